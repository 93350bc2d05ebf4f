-- A role beside those that role can have; '' for those. Earlier versions see a user with
-- the role 'user' then. queue_ids and agent_ids are JSON arrays, '' for an empty one.
ALTER TABLE identity_users ADD COLUMN limited_role TEXT NOT NULL DEFAULT '';
ALTER TABLE identity_users ADD COLUMN queue_ids TEXT NOT NULL DEFAULT '';
ALTER TABLE identity_users ADD COLUMN agent_ids TEXT NOT NULL DEFAULT '';
ALTER TABLE identity_api_keys ADD COLUMN role TEXT NOT NULL DEFAULT 'admin';
ALTER TABLE identity_api_keys ADD COLUMN queue_ids TEXT NOT NULL DEFAULT '';
ALTER TABLE identity_api_keys ADD COLUMN agent_ids TEXT NOT NULL DEFAULT '';
