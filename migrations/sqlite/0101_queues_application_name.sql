-- A queue belongs to the application it names.
ALTER TABLE queues ADD COLUMN application_name TEXT;
