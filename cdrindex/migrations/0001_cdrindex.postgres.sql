-- The rows of the reports. The partitions, cdrindex_rows_YYYYMM by the month
-- (UTC) of started, are made by the program.
CREATE TABLE cdrindex_rows (
	started             BIGINT NOT NULL,
	ended_later         BIGINT,   -- ended_time, of a call that ended in a later month than it began
	answered_time       BIGINT NOT NULL,
	ended_time          BIGINT NOT NULL,
	duration_seconds    BIGINT,
	billing_seconds     BIGINT,
	ringing_seconds     BIGINT,
	lookup_rank         SMALLINT, -- of legs that a look-up by origination_call_id may return, the best first
	account_id          TEXT COLLATE "C" NOT NULL,
	call_id             TEXT COLLATE "C" NOT NULL,
	interaction_id      TEXT COLLATE "C" NOT NULL,
	origination_call_id TEXT COLLATE "C" NOT NULL,
	"from"              TEXT COLLATE "C" NOT NULL,
	"to"                TEXT COLLATE "C" NOT NULL,
	id                  TEXT NOT NULL,
	direction           TEXT NOT NULL,
	caller_id_name      TEXT NOT NULL,
	caller_id_number    TEXT NOT NULL,
	callee_id_name      TEXT NOT NULL,
	callee_id_number    TEXT NOT NULL,
	hangup_cause        TEXT NOT NULL,
	presence_id         TEXT NOT NULL,
	other_leg_call_id   TEXT NOT NULL,
	custom_sip_headers  TEXT NOT NULL,
	custom_channel_vars TEXT NOT NULL,
	recording_id        TEXT NOT NULL,
	media_server        TEXT NOT NULL
) PARTITION BY RANGE (started);

CREATE INDEX cdrindex_rows_newest ON cdrindex_rows (account_id, started, call_id);
CREATE INDEX cdrindex_rows_interaction ON cdrindex_rows (account_id, interaction_id, started);
CREATE INDEX cdrindex_rows_from ON cdrindex_rows (account_id, "from", started);
CREATE INDEX cdrindex_rows_to ON cdrindex_rows (account_id, "to", started);
CREATE INDEX cdrindex_rows_lookup ON cdrindex_rows (account_id, origination_call_id, lookup_rank, started, call_id)
	WHERE lookup_rank IS NOT NULL;
CREATE INDEX cdrindex_rows_edge ON cdrindex_rows (account_id, ended_later) WHERE ended_later IS NOT NULL;

-- Where the one row of each call is, and which record it came from.
CREATE TABLE cdrindex_calls (
	started          BIGINT NOT NULL,
	ended_later      BIGINT,
	source_offset    BIGINT NOT NULL,
	recorded         BIGINT NOT NULL,
	source_partition INTEGER NOT NULL,
	account_id       TEXT COLLATE "C" NOT NULL,
	call_id          TEXT COLLATE "C" NOT NULL,
	PRIMARY KEY (account_id, call_id)
);

CREATE INDEX cdrindex_calls_edge ON cdrindex_calls (account_id, ended_later, started) WHERE ended_later IS NOT NULL;

-- How far the indexers are: all of cdr's partition n below next is in the rows.
CREATE TABLE cdrindex_offsets (
	topic_partition INTEGER PRIMARY KEY,
	next            BIGINT NOT NULL,
	epoch           BIGINT NOT NULL -- how often the topic was found to have been made anew
);
