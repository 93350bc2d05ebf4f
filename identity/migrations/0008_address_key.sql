-- The key of the hashes of identity_known_addresses, sealed under a service
-- master key. There is one row. Hashes made without a key cannot be converted.
CREATE TABLE identity_address_keys (
    id            TEXT NOT NULL PRIMARY KEY,
    secret        TEXT NOT NULL,
    master_key_id TEXT NOT NULL
);
DELETE FROM identity_known_addresses;
