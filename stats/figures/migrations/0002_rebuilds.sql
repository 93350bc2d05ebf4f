-- Requests to fold partitions of cc.evt again, the last one of each partition.
CREATE TABLE figures_rebuilds (
    topic_partition BIGINT NOT NULL PRIMARY KEY,
    request_id      TEXT   NOT NULL, -- the same for all partitions
    from_time       BIGINT NOT NULL, -- Unix seconds: rows of intervals that begin then or later are replaced
    state           TEXT   NOT NULL, -- open, done or failed
    message         TEXT   NOT NULL, -- of a failed one
    folded          BIGINT NOT NULL, -- events
    total           BIGINT NOT NULL
);
