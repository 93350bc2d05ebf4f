ALTER TABLE cdrindex_rows ADD COLUMN queue_id TEXT NOT NULL DEFAULT '';
ALTER TABLE cdrindex_rows ADD COLUMN agent_id TEXT NOT NULL DEFAULT '';
-- How well the call went, of a row that is the best of several records; NULL: the newest record is the row.
ALTER TABLE cdrindex_calls ADD COLUMN outcome INTEGER;
