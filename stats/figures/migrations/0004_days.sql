-- Sums of the rows of figures_queues for the days of an account's time zone that are long over.
CREATE TABLE figures_queue_days (
    account_id            TEXT   NOT NULL,
    queue_id              TEXT   NOT NULL,
    interval_start        BIGINT NOT NULL, -- of the day, Unix seconds
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
    PRIMARY KEY (account_id, interval_start, queue_id)
);
CREATE INDEX figures_queue_days_one ON figures_queue_days (account_id, queue_id, interval_start);
CREATE INDEX figures_queue_days_age ON figures_queue_days (interval_start);

-- The days whose sums are those of figures_queues. A change of a row there deletes its day here, in
-- the same transaction.
CREATE TABLE figures_days (
    account_id       TEXT   NOT NULL,
    interval_start   BIGINT NOT NULL, -- Unix seconds
    interval_seconds BIGINT NOT NULL, -- 82800 to 90000
    PRIMARY KEY (account_id, interval_start)
);
CREATE INDEX figures_days_age ON figures_days (interval_start);
