-- The users of an OpenID Connect provider. A row stays when its user is deleted:
-- its subject is then refused, until an administrator creates a user for it.
CREATE TABLE identity_oidc_users (
    issuer  TEXT NOT NULL,
    subject TEXT NOT NULL,
    user_id TEXT NOT NULL UNIQUE,
    PRIMARY KEY (issuer, subject)
);

-- Unix milliseconds; no token of the session lives longer. NULL: no such end.
ALTER TABLE identity_refresh_tokens ADD COLUMN ends_at BIGINT;
