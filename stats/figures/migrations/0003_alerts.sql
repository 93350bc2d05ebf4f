-- Alerts that have begun. alert is their JSON, as in events and lists.
CREATE TABLE figures_alerts (
    account_id TEXT   NOT NULL,
    alert_id   TEXT   NOT NULL,
    event_id   BIGINT NOT NULL, -- the last event that changed the row
    started_ms BIGINT NOT NULL, -- Unix milliseconds
    ended_ms   BIGINT NOT NULL, -- 0: it has not ended
    queue_id   TEXT   NOT NULL, -- '': none, as agent_id
    agent_id   TEXT   NOT NULL,
    alert      TEXT   NOT NULL,
    PRIMARY KEY (account_id, alert_id)
);
CREATE INDEX figures_alerts_newest ON figures_alerts (account_id, started_ms, alert_id);
CREATE INDEX figures_alerts_active ON figures_alerts (account_id, started_ms) WHERE ended_ms = 0;
CREATE INDEX figures_alerts_age ON figures_alerts (ended_ms);

-- Callers who hung up in a queue.
CREATE TABLE figures_abandoned (
    account_id     TEXT   NOT NULL,
    call_id        TEXT   NOT NULL,
    entered_ms     BIGINT NOT NULL, -- Unix milliseconds
    event_id       BIGINT NOT NULL, -- the last event that changed the row
    abandoned_ms   BIGINT NOT NULL,
    wait_ms        BIGINT NOT NULL,
    short          BIGINT NOT NULL, -- 1: within the queue's short_abandon_seconds
    queue_id       TEXT   NOT NULL,
    caller         TEXT   NOT NULL, -- '': not known, as interaction_id
    interaction_id TEXT   NOT NULL,
    PRIMARY KEY (account_id, call_id, entered_ms)
);
CREATE INDEX figures_abandoned_newest ON figures_abandoned (account_id, abandoned_ms, call_id);
CREATE INDEX figures_abandoned_queue ON figures_abandoned (account_id, queue_id, abandoned_ms);
CREATE INDEX figures_abandoned_caller ON figures_abandoned (account_id, caller, abandoned_ms);
CREATE INDEX figures_abandoned_age ON figures_abandoned (abandoned_ms);
