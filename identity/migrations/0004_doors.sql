-- Passwords of phones, apart from the user's own: what digest authentication
-- needs (HA1 with MD5 and with SHA-256, RFC 7616), sealed under a service master
-- key.
CREATE TABLE identity_device_passwords (
    id            TEXT   NOT NULL PRIMARY KEY,
    user_id       TEXT   NOT NULL REFERENCES identity_users (id) ON DELETE CASCADE,
    name          TEXT   NOT NULL,
    secret        TEXT   NOT NULL,
    master_key_id TEXT   NOT NULL,
    created_at    BIGINT NOT NULL -- Unix milliseconds
);
CREATE INDEX identity_device_passwords_user ON identity_device_passwords (user_id);
CREATE INDEX identity_device_passwords_master_key ON identity_device_passwords (master_key_id);

-- Networks from which a user has authenticated: a hash over user and network.
CREATE TABLE identity_known_addresses (
    hash    TEXT   NOT NULL PRIMARY KEY,
    user_id TEXT   NOT NULL REFERENCES identity_users (id) ON DELETE CASCADE,
    seen_at BIGINT NOT NULL -- Unix milliseconds
);
CREATE INDEX identity_known_addresses_user ON identity_known_addresses (user_id, seen_at);
CREATE INDEX identity_known_addresses_seen ON identity_known_addresses (seen_at);
