-- The hash of the secret that all refresh tokens of a session begin with; '': of a session that
-- was begun by an earlier version. A session is one row, which a refresh updates; earlier
-- versions keep a row of each used token.
ALTER TABLE identity_refresh_tokens ADD COLUMN family_hash TEXT NOT NULL DEFAULT '';
CREATE INDEX identity_refresh_tokens_family_hash ON identity_refresh_tokens (family_hash);

-- The user or API key that stored a filter, and its account. '': an earlier version stored it.
ALTER TABLE identity_filters ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE identity_filters ADD COLUMN account_id TEXT NOT NULL DEFAULT '';
CREATE INDEX identity_filters_owner ON identity_filters (owner, expires_at);
CREATE INDEX identity_filters_account ON identity_filters (account_id);
