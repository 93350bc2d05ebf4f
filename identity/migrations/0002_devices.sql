-- What a user's phone registers with: the user's extension and password, the
-- latter as digest authentication needs it (HA1, RFC 2617), sealed under a
-- service master key.
CREATE TABLE identity_devices (
    user_id       TEXT   NOT NULL PRIMARY KEY REFERENCES identity_users (id) ON DELETE CASCADE,
    ha1           TEXT   NOT NULL,
    master_key_id TEXT   NOT NULL,
    created_at    BIGINT NOT NULL
);
CREATE INDEX identity_devices_master_key ON identity_devices (master_key_id);
