-- Tells operations of one name apart. Only those that ran beside others have it: branches under Promise.all take numbers by
-- time, and a replay must not give one the outcome of another. Other libraries leave it out.
ALTER TABLE operation_outputs ADD COLUMN arguments_hash INTEGER;
