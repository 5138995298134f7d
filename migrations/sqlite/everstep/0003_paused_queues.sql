-- Queues that nobody takes workflows from for now.
CREATE TABLE IF NOT EXISTS paused_queues (
  name TEXT NOT NULL PRIMARY KEY,
  paused_at BIGINT NOT NULL
);
