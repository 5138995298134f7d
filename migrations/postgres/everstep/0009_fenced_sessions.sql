-- Sessions whose connection was lost during a commit. A copy of the commit that reaches the server late finds its session
-- here, and refuses itself.
CREATE TABLE IF NOT EXISTS {schema}.fenced_sessions (
  session_key BIGINT PRIMARY KEY,
  fenced_at BIGINT NOT NULL
);
