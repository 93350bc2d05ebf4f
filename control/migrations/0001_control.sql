-- Actions on agents and calls. Times are Unix milliseconds.
CREATE TABLE control_actions (
    id         TEXT   NOT NULL PRIMARY KEY,
    account_id TEXT   NOT NULL,
    actor      TEXT   NOT NULL,
    idem_key   TEXT,            -- the request's Idempotency-Key; NULL: none
    request    TEXT   NOT NULL, -- hash of what was asked
    command    TEXT   NOT NULL, -- JSON
    state      TEXT   NOT NULL, -- asked, sent, accepted, confirmed, refused or unconfirmed
    event_id   TEXT   NOT NULL,
    message    TEXT   NOT NULL,
    kind       TEXT   NOT NULL, -- of the refusal's error
    created_at BIGINT NOT NULL,
    changed_at BIGINT NOT NULL,
    announced  TEXT   NOT NULL  -- the last state of which an event was published
);
CREATE UNIQUE INDEX control_actions_key ON control_actions (actor, idem_key);
CREATE INDEX control_actions_open ON control_actions (changed_at);
