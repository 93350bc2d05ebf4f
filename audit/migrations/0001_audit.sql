-- Entries that are not in the chain yet. They are inserted in the transaction
-- of what they record, without waiting for each other.
CREATE TABLE audit_pending (
    id         TEXT   PRIMARY KEY,
    at         BIGINT NOT NULL, -- Unix milliseconds
    account_id TEXT   NOT NULL, -- '': of no account
    actor      TEXT   NOT NULL, -- '': nobody who is known
    address    TEXT   NOT NULL, -- '': local
    action     TEXT   NOT NULL,
    target     TEXT   NOT NULL,
    outcome    TEXT   NOT NULL
);

CREATE INDEX audit_pending_oldest ON audit_pending (at, id);

-- The chain. Rows are inserted in the order of seq and never updated; only the
-- oldest are deleted, when their retention ends.
CREATE TABLE audit_entries (
    seq        BIGINT PRIMARY KEY,
    id         TEXT   NOT NULL,
    at         BIGINT NOT NULL,
    account_id TEXT   NOT NULL,
    actor      TEXT   NOT NULL,
    address    TEXT   NOT NULL,
    action     TEXT   NOT NULL,
    target     TEXT   NOT NULL,
    outcome    TEXT   NOT NULL,
    prev       TEXT   NOT NULL, -- hash of the entry before
    hash       TEXT   NOT NULL  -- SHA-256, hexadecimal
);

CREATE INDEX audit_entries_by_account ON audit_entries (account_id, at, id);
CREATE INDEX audit_entries_by_actor ON audit_entries (account_id, actor, at, id);

-- One row: the newest entry of the chain, and the newest that retention has
-- deleted, at which the verification begins. Its lock makes writers of the
-- chain take turns.
CREATE TABLE audit_chain (
    id          BIGINT PRIMARY KEY CHECK (id = 1),
    seq         BIGINT NOT NULL,
    hash        TEXT   NOT NULL,
    pruned_seq  BIGINT NOT NULL,
    pruned_hash TEXT   NOT NULL
);
INSERT INTO audit_chain (id, seq, hash, pruned_seq, pruned_hash) VALUES (1, 0, '', 0, '');

-- One row: how far the topic is, and which node publishes.
CREATE TABLE audit_topic (
    id          BIGINT PRIMARY KEY CHECK (id = 1),
    seq         BIGINT NOT NULL, -- of the newest published entry
    lease_until BIGINT NOT NULL  -- Unix milliseconds
);
INSERT INTO audit_topic (id, seq, lease_until) VALUES (1, 0, 0);
