-- What a recording knows of its call: '' and 0 are unknown.
ALTER TABLE recordings ADD COLUMN call_id             TEXT   NOT NULL DEFAULT '';
ALTER TABLE recordings ADD COLUMN interaction_id      TEXT   NOT NULL DEFAULT '';
ALTER TABLE recordings ADD COLUMN origination_call_id TEXT   NOT NULL DEFAULT '';
ALTER TABLE recordings ADD COLUMN agent_id            TEXT   NOT NULL DEFAULT '';
ALTER TABLE recordings ADD COLUMN queue_id            TEXT   NOT NULL DEFAULT '';
ALTER TABLE recordings ADD COLUMN direction           TEXT   NOT NULL DEFAULT '';
ALTER TABLE recordings ADD COLUMN started_at          BIGINT NOT NULL DEFAULT 0;  -- Unix seconds
ALTER TABLE recordings ADD COLUMN duration_ms         BIGINT NOT NULL DEFAULT 0;
ALTER TABLE recordings ADD COLUMN channels            BIGINT NOT NULL DEFAULT 0;
ALTER TABLE recordings ADD COLUMN pauses              TEXT   NOT NULL DEFAULT ''; -- a JSON array
ALTER TABLE recordings ADD COLUMN expires_at          BIGINT NOT NULL DEFAULT 0;  -- Unix seconds; 0: kept for good
ALTER TABLE recordings ADD COLUMN hold_reason         TEXT   NOT NULL DEFAULT ''; -- '': no legal hold
ALTER TABLE recordings ADD COLUMN held_at             BIGINT NOT NULL DEFAULT 0;  -- Unix seconds
ALTER TABLE recordings ADD COLUMN complete_after      BIGINT;                     -- Unix milliseconds of the next look for the call's record; NULL: none

CREATE INDEX recordings_by_call ON recordings (account_id, call_id, created_at) WHERE call_id <> '';
CREATE INDEX recordings_by_interaction ON recordings (account_id, interaction_id, created_at) WHERE interaction_id <> '';
CREATE INDEX recordings_by_origination ON recordings (account_id, origination_call_id, created_at) WHERE origination_call_id <> '';
CREATE INDEX recordings_by_agent ON recordings (account_id, agent_id, created_at) WHERE agent_id <> '';
CREATE INDEX recordings_by_queue ON recordings (account_id, queue_id, created_at) WHERE queue_id <> '';
CREATE INDEX recordings_to_complete ON recordings (complete_after) WHERE complete_after IS NOT NULL;
CREATE INDEX recordings_expiring ON recordings (expires_at) WHERE expires_at <> 0;
