-- One-time passwords (TOTP, RFC 6238). The secret is sealed under a service
-- master key. A user has at most one confirmed secret, which logins ask for, and
-- one that is being enrolled.
CREATE TABLE identity_otp (
    id            TEXT   NOT NULL PRIMARY KEY,
    user_id       TEXT   NOT NULL REFERENCES identity_users (id) ON DELETE CASCADE,
    secret        TEXT   NOT NULL,
    master_key_id TEXT   NOT NULL,
    confirmed     BIGINT NOT NULL CHECK (confirmed IN (0, 1)),
    last_step     BIGINT NOT NULL, -- of the newest code that was accepted
    created_at    BIGINT NOT NULL, -- Unix milliseconds
    UNIQUE (user_id, confirmed)
);
CREATE INDEX identity_otp_master_key ON identity_otp (master_key_id);

-- Codes that replace one one-time password each: SHA-256, hex.
CREATE TABLE identity_recovery_codes (
    hash    TEXT NOT NULL PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES identity_users (id) ON DELETE CASCADE
);
CREATE INDEX identity_recovery_codes_user ON identity_recovery_codes (user_id);

-- 1: the account's administrators log in with a one-time password only.
ALTER TABLE identity_accounts ADD COLUMN admin_otp BIGINT NOT NULL DEFAULT 0;
