-- Rows of cc.stats: the figures of queues and agents in one interval. A queue or
-- agent whose events are in several partitions has a row of each: they are added up.
CREATE TABLE figures_queues (
    account_id            TEXT   NOT NULL,
    queue_id              TEXT   NOT NULL,
    interval_start        BIGINT NOT NULL, -- Unix seconds
    interval_seconds      BIGINT NOT NULL,
    topic_partition       BIGINT NOT NULL,
    event_id              BIGINT NOT NULL, -- the last event that changed the row
    offered               BIGINT NOT NULL,
    answered              BIGINT NOT NULL,
    abandoned             BIGINT NOT NULL,
    abandoned_short       BIGINT NOT NULL,
    answered_within       BIGINT NOT NULL,
    transferred           BIGINT NOT NULL,
    service_level_seconds BIGINT NOT NULL,
    short_abandon_seconds BIGINT NOT NULL,
    wait_ms_total         BIGINT NOT NULL,
    wait_ms_max           BIGINT NOT NULL,
    abandon_wait_ms_total BIGINT NOT NULL,
    talk_ms_total         BIGINT NOT NULL,
    hold_ms_total         BIGINT NOT NULL,
    wrap_up_ms_total      BIGINT NOT NULL,
    PRIMARY KEY (account_id, interval_start, queue_id, interval_seconds, topic_partition)
);
CREATE INDEX figures_queues_one ON figures_queues (account_id, queue_id, interval_start);
CREATE INDEX figures_queues_age ON figures_queues (interval_start);

CREATE TABLE figures_agents (
    account_id         TEXT   NOT NULL,
    agent_id           TEXT   NOT NULL,
    interval_start     BIGINT NOT NULL, -- Unix seconds
    interval_seconds   BIGINT NOT NULL,
    topic_partition    BIGINT NOT NULL,
    event_id           BIGINT NOT NULL, -- the last event that changed the row
    logged_in_ms       BIGINT NOT NULL,
    available_ms       BIGINT NOT NULL,
    talking_ms         BIGINT NOT NULL,
    wrap_up_ms         BIGINT NOT NULL,
    break_ms           BIGINT NOT NULL,
    offered            BIGINT NOT NULL,
    answered           BIGINT NOT NULL,
    no_answer          BIGINT NOT NULL,
    break_ms_by_reason TEXT   NOT NULL, -- JSON object, '': none
    PRIMARY KEY (account_id, interval_start, agent_id, interval_seconds, topic_partition)
);
CREATE INDEX figures_agents_one ON figures_agents (account_id, agent_id, interval_start);
CREATE INDEX figures_agents_age ON figures_agents (interval_start);

-- Up to where each partition of cc.stats is in the rows.
CREATE TABLE figures_offsets (
    topic_partition BIGINT NOT NULL PRIMARY KEY,
    next            BIGINT NOT NULL, -- after the last record
    topic_id        TEXT   NOT NULL, -- '' when not known
    leader_epoch    BIGINT NOT NULL  -- of the record before next, -1 when not known
);
