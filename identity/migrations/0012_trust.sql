-- The account whose administrator, or the feed that, chose the account's names: feed: and tenant:ID.
-- '': the operator.
ALTER TABLE identity_accounts ADD COLUMN named_by TEXT NOT NULL DEFAULT '';

-- They stay taken for a time.
ALTER TABLE identity_deleted_accounts ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE identity_deleted_accounts ADD COLUMN domain TEXT NOT NULL DEFAULT '';

-- The id of the confirmed secret whose code began the enrolment; '': there was none.
ALTER TABLE identity_otp ADD COLUMN replaces TEXT NOT NULL DEFAULT '';

-- Users of an OpenID Connect provider, by account: the same subject can have a user in each.
-- A row without its user is a deleted user. account_id '': a user who was deleted before the
-- account was kept, in an unknown account. Nodes of the version before go on with
-- identity_oidc_users, which a later version drops.
CREATE TABLE identity_oidc_subjects (
    issuer     TEXT NOT NULL,
    subject    TEXT NOT NULL,
    account_id TEXT NOT NULL,
    user_id    TEXT NOT NULL UNIQUE,
    PRIMARY KEY (issuer, subject, account_id)
);
INSERT INTO identity_oidc_subjects (issuer, subject, account_id, user_id)
    SELECT o.issuer, o.subject, COALESCE(u.account_id, ''), o.user_id
    FROM identity_oidc_users o LEFT JOIN identity_users u ON u.id = o.user_id;
