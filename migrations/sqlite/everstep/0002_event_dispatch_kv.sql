-- A file that another library has brought to 100 or beyond has no event_dispatch_kv.
CREATE TABLE IF NOT EXISTS event_dispatch_kv (
  service_name TEXT NOT NULL,
  workflow_fn_name TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT,
  update_seq NUMERIC(38, 0),
  update_time NUMERIC(38, 15),
  PRIMARY KEY (service_name, workflow_fn_name, key)
);
