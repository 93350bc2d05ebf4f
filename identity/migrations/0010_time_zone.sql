-- IANA name; '': UTC. Reports add up by its hours and days.
ALTER TABLE identity_accounts ADD COLUMN time_zone TEXT NOT NULL DEFAULT '';
