-- Filters of channel tokens that are too long for the token, under the SHA-256
-- of their JSON.
CREATE TABLE identity_filters (
    id         TEXT PRIMARY KEY,
    filter     TEXT NOT NULL,
    expires_at BIGINT NOT NULL -- Unix milliseconds, after the last token that names it
);
CREATE INDEX identity_filters_expiry ON identity_filters (expires_at);
