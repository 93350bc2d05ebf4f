CREATE TABLE recordings (
    account_id     TEXT    NOT NULL,
    recording_id   TEXT    NOT NULL,
    encrypted      BOOLEAN NOT NULL,
    key_id         TEXT    NOT NULL, -- '' of a plain recording, as are the next three
    key_version    BIGINT  NOT NULL,
    algorithm      TEXT    NOT NULL,
    salt           TEXT    NOT NULL, -- the recording's own, base64
    size           BIGINT  NOT NULL, -- of the audio
    stored_size    BIGINT  NOT NULL, -- of the object
    digest         TEXT    NOT NULL, -- sha256: and the audio's SHA-256 in hex
    content_type   TEXT    NOT NULL,
    created_at     BIGINT  NOT NULL, -- Unix milliseconds
    object         TEXT    NOT NULL, -- its name in the store
    announce_after BIGINT,           -- Unix milliseconds; NULL: recording.stored has been sent
    PRIMARY KEY (account_id, recording_id)
);

CREATE UNIQUE INDEX recordings_by_object ON recordings (object);
CREATE INDEX recordings_newest ON recordings (account_id, created_at, recording_id);
CREATE INDEX recordings_to_announce ON recordings (announce_after) WHERE announce_after IS NOT NULL;
