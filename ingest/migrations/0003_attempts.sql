-- When an attempt that did not complete can have written to Kafka last, in milliseconds of the database's
-- clock; 0: there was none. The first attempt began when the row expires minus a day.
ALTER TABLE ingest_keys ADD COLUMN attempted_until BIGINT NOT NULL DEFAULT 0;
