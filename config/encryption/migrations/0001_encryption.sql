CREATE TABLE encryption_configs (
    account_id  TEXT    PRIMARY KEY,
    enabled     BOOLEAN NOT NULL,
    algorithm   TEXT    NOT NULL, -- '': none was ever sent or needed
    key_version BIGINT  NOT NULL, -- 0: never enabled, no key yet
    revision    BIGINT  NOT NULL, -- counts changes, for the ETag
    updated_at  BIGINT  NOT NULL  -- Unix milliseconds
);

-- Every version there ever was, the current one included. Never deleted.
CREATE TABLE encryption_keys (
    account_id    TEXT   NOT NULL,
    version       BIGINT NOT NULL,
    sealed        TEXT   NOT NULL, -- base64(key):base64(salt) under a master key
    master_key_id TEXT   NOT NULL,
    created_at    BIGINT NOT NULL, -- Unix milliseconds
    PRIMARY KEY (account_id, version)
);

CREATE INDEX encryption_keys_by_master_key ON encryption_keys (master_key_id, account_id, version);

-- Who read or changed a configuration. Append only; holds no key.
CREATE TABLE encryption_audit (
    at          BIGINT NOT NULL, -- Unix milliseconds
    account_id  TEXT   NOT NULL,
    who         TEXT   NOT NULL,
    action      TEXT   NOT NULL, -- read, change
    key_version BIGINT NOT NULL,
    revision    BIGINT NOT NULL
);

CREATE INDEX encryption_audit_by_account ON encryption_audit (account_id, at);
