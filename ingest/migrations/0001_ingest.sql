-- Idempotency-Keys of bodies.
CREATE TABLE ingest_keys (
    source      TEXT    NOT NULL, -- whose key it is, as in the records' header source
    key         TEXT    NOT NULL, -- Idempotency-Key
    body        TEXT    NOT NULL, -- SHA-256 of format and body, hexadecimal
    records     BIGINT  NOT NULL, -- how many the body had, once stored
    stored      BOOLEAN NOT NULL, -- Kafka has acknowledged all of them, but for what refusal says
    refusal     TEXT    NOT NULL, -- answer of a body with a record that its topic does not take, else ''
    holder      TEXT    NOT NULL, -- the request that stores the body, until lease_until
    lease_until BIGINT  NOT NULL, -- milliseconds of the database's clock, as is expires_at
    expires_at  BIGINT  NOT NULL,
    PRIMARY KEY (source, key)
);

CREATE INDEX ingest_keys_to_purge ON ingest_keys (expires_at);
