-- Deleted accounts. A row stays for ever: an id is never given again. What the
-- account has in other packages is purged a while after its deletion.
CREATE TABLE identity_deleted_accounts (
    id          TEXT    NOT NULL PRIMARY KEY,
    audited_by  TEXT    NOT NULL, -- the account whose audit log has the deletion
    deleted_at  BIGINT  NOT NULL,
    purge_now   BOOLEAN NOT NULL, -- do not wait
    purged_at   BIGINT,           -- NULL: not yet, or not to its end
    lease_until BIGINT  NOT NULL  -- a process is at it until then
);
