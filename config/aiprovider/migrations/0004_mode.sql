-- needs 0003
ALTER TABLE ai_providers ADD COLUMN mode TEXT NOT NULL DEFAULT ''; -- '': not sent
