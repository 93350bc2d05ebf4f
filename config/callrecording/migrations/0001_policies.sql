CREATE TABLE call_recording_policies (
    account_id TEXT   NOT NULL PRIMARY KEY,
    policy     TEXT   NOT NULL, -- JSON
    updated_at BIGINT NOT NULL  -- Unix milliseconds
);
