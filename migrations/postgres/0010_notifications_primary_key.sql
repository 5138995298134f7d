-- A message is identified by its ID, so that sending it twice stores it once. The migration is left out where
-- the table has a primary key already; the runner looks before it runs this statement.
ALTER TABLE {schema}.notifications ADD PRIMARY KEY (message_uuid);
