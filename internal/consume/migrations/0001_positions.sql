-- How far each consumer of a log has stored a partition of its topic.
CREATE TABLE log_positions (
    consumer        TEXT   NOT NULL,
    topic_partition BIGINT NOT NULL,
    next            BIGINT NOT NULL, -- offset of the next record
    topic_id        TEXT   NOT NULL, -- '': not known
    leader_epoch    BIGINT NOT NULL, -- of the record before; -1: not known
    generation      BIGINT NOT NULL, -- how often the topic was found to be created again
    last_id         BIGINT NOT NULL, -- event id of the last record before, of consumers that drop repeats by it; 0: not known
    version         BIGINT NOT NULL, -- raised with every change: who finds another one is not the owner any more
    PRIMARY KEY (consumer, topic_partition)
);
