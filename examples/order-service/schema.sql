-- The tables of the order service, beside those of `everstep outbox ddl --dialect sqlite --without state`.
CREATE TABLE orders (id TEXT PRIMARY KEY, item TEXT NOT NULL, status TEXT NOT NULL);
CREATE TABLE history (order_id TEXT NOT NULL REFERENCES orders (id), status TEXT NOT NULL);
