-- What an API key may do, comma-separated. Keys that are there keep the rights
-- that every key had.
ALTER TABLE identity_api_keys ADD COLUMN scopes TEXT NOT NULL DEFAULT 'ingest,read,recordings,calls';
-- Unix milliseconds. NULL: the key does not expire.
ALTER TABLE identity_api_keys ADD COLUMN expires_at BIGINT;
