-- The epochs of the journal: which cluster wrote its rows, by the numbers that it gave its transactions.
CREATE TABLE IF NOT EXISTS {schema}.journal_epochs (
  epoch INTEGER PRIMARY KEY,
  cluster TEXT NOT NULL,
  -- Rows up to this one are of earlier epochs.
  after_seq BIGINT NOT NULL
);
