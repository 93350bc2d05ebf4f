-- The account of the caller whose key it is, so that a deleted account's keys are
-- purged. Rows from before live for a day at most.
ALTER TABLE ingest_keys ADD COLUMN account_id TEXT NOT NULL DEFAULT '';
CREATE INDEX ingest_keys_account ON ingest_keys (account_id);
