CREATE TABLE origination_calls (
    id               TEXT    PRIMARY KEY,            -- Order.ID
    call_id          TEXT    NOT NULL,               -- origination_call_id; id until the platform has said, '' when it gave none
    interaction_id   TEXT    NOT NULL,
    account_id       TEXT    NOT NULL,
    domain           TEXT    NOT NULL,
    user_id          TEXT    NOT NULL,
    extension        TEXT    NOT NULL,
    destination      TEXT    NOT NULL,
    clicktocall_id   TEXT    NOT NULL,
    state            TEXT    NOT NULL,
    cause            TEXT    NOT NULL,               -- '' until it has ended
    history          TEXT    NOT NULL,               -- JSON, as the API shows it
    announced        BIGINT  NOT NULL,               -- how many steps of history are known to be on cc.raw
    live             BOOLEAN NOT NULL,               -- false: ended and announced
    node             TEXT    NOT NULL,               -- whose call it is
    cancel_requested BOOLEAN NOT NULL DEFAULT FALSE, -- by another node
    created          BIGINT  NOT NULL,               -- Unix milliseconds, as is updated
    updated          BIGINT  NOT NULL
);

CREATE INDEX origination_calls_by_call_id ON origination_calls (call_id);
CREATE INDEX origination_calls_live ON origination_calls (node) WHERE live;
CREATE INDEX origination_calls_to_cancel ON origination_calls (node) WHERE live AND cancel_requested;
CREATE INDEX origination_calls_to_purge ON origination_calls (updated) WHERE NOT live;

-- The processes that follow calls. One whose time is over is dead.
CREATE TABLE origination_nodes (
    node       TEXT   PRIMARY KEY,
    expires_at BIGINT NOT NULL -- Unix milliseconds of the database's clock
);

CREATE TABLE origination_keys (
    user_id     TEXT    NOT NULL,
    key         TEXT    NOT NULL, -- Idempotency-Key
    destination TEXT    NOT NULL,
    order_id    TEXT    NOT NULL, -- of the call placed under it
    call_id     TEXT    NOT NULL, -- the answer, once done
    done        BOOLEAN NOT NULL,
    lease_until BIGINT  NOT NULL, -- whoever places the call has until then; milliseconds of the database's clock
    expires_at  BIGINT  NOT NULL,
    PRIMARY KEY (user_id, key)
);

CREATE INDEX origination_keys_to_purge ON origination_keys (expires_at);
