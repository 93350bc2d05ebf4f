-- The account of the user whose key it is, so that a deleted account's keys are
-- purged. Rows from before live for a day at most.
ALTER TABLE origination_keys ADD COLUMN account_id TEXT NOT NULL DEFAULT '';
CREATE INDEX origination_keys_account ON origination_keys (account_id);
