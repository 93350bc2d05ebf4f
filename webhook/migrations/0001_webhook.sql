CREATE TABLE webhooks (
    id            TEXT   PRIMARY KEY,
    account_id    TEXT   NOT NULL,
    url           TEXT   NOT NULL,
    filters       TEXT   NOT NULL, -- JSON, identity.Filter
    format        TEXT   NOT NULL, -- trunkline, cloudevents
    sealed        TEXT   NOT NULL, -- the signing key, under a master key
    master_key_id TEXT   NOT NULL,
    created_at    BIGINT NOT NULL, -- Unix milliseconds, as all times
    updated_at    BIGINT NOT NULL,
    retries       BIGINT NOT NULL DEFAULT 0, -- requests to retry: each begins the back-off anew
    seek          BIGINT NOT NULL DEFAULT 0, -- those that moved the positions
    failures      BIGINT NOT NULL DEFAULT 0, -- attempts in a row
    last_error    TEXT   NOT NULL DEFAULT '',
    failed_at     BIGINT NOT NULL DEFAULT 0, -- 0: never
    next_try_at   BIGINT NOT NULL DEFAULT 0, -- after failures
    paused_at     BIGINT NOT NULL DEFAULT 0  -- 0: not paused
);

CREATE INDEX webhooks_by_account ON webhooks (account_id, created_at, id);
CREATE INDEX webhooks_by_master_key ON webhooks (master_key_id, account_id, id);

-- Raised with every change that nodes have to know of.
CREATE TABLE webhook_revision (revision BIGINT NOT NULL);
INSERT INTO webhook_revision VALUES (0);

-- Up to where each partition of cc.evt is delivered to all webhooks that have no row
-- of their own in webhook_positions.
CREATE TABLE webhook_partitions (
    topic_partition BIGINT PRIMARY KEY,
    next            BIGINT NOT NULL, -- offset
    topic_id        TEXT   NOT NULL, -- '': not known
    leader_epoch    BIGINT NOT NULL, -- of the record before; -1: not known
    last_id         BIGINT NOT NULL, -- event id of the last record before; 0: not known
    version         BIGINT NOT NULL  -- raised with every change: who finds another one is not the owner any more
);

-- Webhooks that are at another offset: behind, paused or moved by a retry.
CREATE TABLE webhook_positions (
    topic_partition BIGINT NOT NULL,
    webhook_id      TEXT   NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    seek            BIGINT NOT NULL, -- webhooks.seek that the row belongs to
    next            BIGINT NOT NULL, -- offset
    last_id         BIGINT NOT NULL, -- events up to this id are not delivered again
    PRIMARY KEY (topic_partition, webhook_id)
);

CREATE INDEX webhook_positions_by_webhook ON webhook_positions (webhook_id);
