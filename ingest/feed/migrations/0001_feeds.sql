-- Nodes that may read a feed. Times are milliseconds of the database's clock.
CREATE TABLE feeds_leases (
    feed       TEXT   NOT NULL,
    slot       BIGINT NOT NULL, -- 0 up to the feed's redundancy
    node       TEXT   NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (feed, slot)
);

-- What each node says of its part of a feed.
CREATE TABLE feeds_status (
    feed       TEXT   NOT NULL,
    node       TEXT   NOT NULL,
    state      TEXT   NOT NULL,
    status     TEXT   NOT NULL, -- JSON
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (feed, node)
);
