-- Which log next is in: Kafka's topic id ('' when not known) and the leader
-- epoch of the record before next (-1 when not known).
ALTER TABLE cdrindex_offsets ADD COLUMN topic_id TEXT NOT NULL DEFAULT '';
ALTER TABLE cdrindex_offsets ADD COLUMN leader_epoch INTEGER NOT NULL DEFAULT -1;
