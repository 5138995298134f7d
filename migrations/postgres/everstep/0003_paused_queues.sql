-- Queues that nobody takes workflows from for now.
CREATE TABLE IF NOT EXISTS {schema}.paused_queues (
  name TEXT PRIMARY KEY,
  paused_at BIGINT NOT NULL
);
