-- The seed of a signing key is sealed under a service master key. Where
-- master_key_id is empty it is still the plain text of an earlier version. The
-- public key is enough to check tokens, also without a master key.
ALTER TABLE identity_signing_keys ADD COLUMN master_key_id TEXT NOT NULL DEFAULT '';
ALTER TABLE identity_signing_keys ADD COLUMN public_key TEXT NOT NULL DEFAULT '';

-- Memory knows every user, so a change of a user raises the counter
-- identity_revision.revocations too, and its row takes the new value.
ALTER TABLE identity_users ADD COLUMN revision BIGINT NOT NULL DEFAULT 1;
CREATE INDEX identity_users_revision ON identity_users (revision);

-- A new password raises the generation. Tokens of an earlier generation are
-- refused, except those of the session that changed the password.
ALTER TABLE identity_users ADD COLUMN generation BIGINT NOT NULL DEFAULT 0;
ALTER TABLE identity_users ADD COLUMN kept_family TEXT NOT NULL DEFAULT '';
