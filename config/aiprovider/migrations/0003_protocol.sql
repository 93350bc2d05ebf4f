-- needs 0002
ALTER TABLE ai_providers ADD COLUMN protocol   TEXT    NOT NULL DEFAULT ''; -- '': not sent
ALTER TABLE ai_providers ADD COLUMN has_secret BOOLEAN NOT NULL DEFAULT FALSE; -- sealed has the vendor's token
ALTER TABLE ai_providers ADD COLUMN session    TEXT    NOT NULL DEFAULT ''; -- JSON object; '': not sent
