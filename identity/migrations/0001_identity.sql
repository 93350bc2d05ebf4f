-- Times are Unix milliseconds. Hashes are SHA-256, hex. Case-insensitive names
-- are stored lower-cased by the program: the two databases fold differently.

-- One row. A change raises the counter of what it makes stale in memory, in
-- its own transaction; every Service polls it. The row also serializes changes.
CREATE TABLE identity_revision (
    id          BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
    directory   BIGINT NOT NULL, -- accounts, API keys, signing keys
    revocations BIGINT NOT NULL
);
INSERT INTO identity_revision (id, directory, revocations) VALUES (1, 1, 1);

CREATE TABLE identity_accounts (
    id         TEXT   NOT NULL PRIMARY KEY,
    name       TEXT   NOT NULL UNIQUE,
    domain     TEXT   NOT NULL UNIQUE, -- lower-case
    parent_id  TEXT   REFERENCES identity_accounts (id),
    created_at BIGINT NOT NULL
);
CREATE INDEX identity_accounts_parent ON identity_accounts (parent_id);

CREATE TABLE identity_users (
    id             TEXT   NOT NULL PRIMARY KEY,
    account_id     TEXT   NOT NULL REFERENCES identity_accounts (id) ON DELETE CASCADE,
    username       TEXT   NOT NULL,
    username_key   TEXT   NOT NULL, -- lower-case
    password       TEXT   NOT NULL, -- argon2id in PHC form
    role           TEXT   NOT NULL CHECK (role IN ('user', 'admin')),
    presence_id    TEXT,
    clicktocall_id TEXT   NOT NULL,
    created_at     BIGINT NOT NULL,
    UNIQUE (account_id, username_key),
    UNIQUE (account_id, presence_id)
);

CREATE TABLE identity_api_keys (
    id         TEXT   NOT NULL PRIMARY KEY,
    account_id TEXT   NOT NULL REFERENCES identity_accounts (id) ON DELETE CASCADE,
    name       TEXT   NOT NULL,
    hash       TEXT   NOT NULL UNIQUE,
    created_at BIGINT NOT NULL
);
CREATE INDEX identity_api_keys_account ON identity_api_keys (account_id);

-- A used token stays until it expires, so that showing it again is noticed.
CREATE TABLE identity_refresh_tokens (
    hash              TEXT   NOT NULL PRIMARY KEY,
    family_id         TEXT   NOT NULL, -- of the login they all descend from
    user_id           TEXT   NOT NULL REFERENCES identity_users (id) ON DELETE CASCADE,
    expires_at        BIGINT NOT NULL,
    access_expires_at BIGINT NOT NULL, -- of the access token made with it
    used_at           BIGINT
);
CREATE INDEX identity_refresh_tokens_family ON identity_refresh_tokens (family_id);
CREATE INDEX identity_refresh_tokens_user ON identity_refresh_tokens (user_id);
CREATE INDEX identity_refresh_tokens_expiry ON identity_refresh_tokens (expires_at);

CREATE TABLE identity_signing_keys (
    id         TEXT   NOT NULL PRIMARY KEY, -- the kid
    seed       TEXT   NOT NULL,             -- Ed25519 (RFC 8032) private key, base64
    signs_from BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);

-- id names a token (jti), a family or a user: all are random, so they share
-- one namespace. A row stays until every token it is about has expired.
CREATE TABLE identity_revocations (
    id         TEXT   NOT NULL PRIMARY KEY,
    expires_at BIGINT NOT NULL,
    revision   BIGINT NOT NULL
);
CREATE INDEX identity_revocations_revision ON identity_revocations (revision);
CREATE INDEX identity_revocations_expiry ON identity_revocations (expires_at);
