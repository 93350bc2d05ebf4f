CREATE TABLE ai_providers (
    id            TEXT    PRIMARY KEY,
    account_id    TEXT    NOT NULL,
    name          TEXT    NOT NULL,
    audio_format  TEXT    NOT NULL,
    url           TEXT    NOT NULL,
    header_names  TEXT,             -- JSON array; NULL: no headers were sent
    sealed        TEXT    NOT NULL, -- JSON object, name to value, under a master key; '': no values
    master_key_id TEXT    NOT NULL, -- '': nothing is sealed
    extensions    BOOLEAN,          -- NULL: not sent
    fallback      TEXT    NOT NULL, -- '': not sent
    created_at    BIGINT  NOT NULL, -- Unix milliseconds
    updated_at    BIGINT  NOT NULL
);

CREATE INDEX ai_providers_by_account ON ai_providers (account_id, created_at, id);
CREATE INDEX ai_providers_by_master_key ON ai_providers (master_key_id, id);

-- Who changed a provider. Append only; holds no header's value.
CREATE TABLE ai_provider_audit (
    at          BIGINT NOT NULL, -- Unix milliseconds
    account_id  TEXT   NOT NULL,
    who         TEXT   NOT NULL,
    action      TEXT   NOT NULL, -- create, replace, delete
    provider_id TEXT   NOT NULL
);

CREATE INDEX ai_provider_audit_by_account ON ai_provider_audit (account_id, at);
