-- needs 0004
ALTER TABLE ai_providers ADD COLUMN queues TEXT NOT NULL DEFAULT ''; -- JSON array; '': not sent
