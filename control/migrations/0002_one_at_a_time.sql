-- An agent or call takes one action at a time, whatever node it is asked of.
ALTER TABLE control_actions ADD COLUMN target TEXT NOT NULL DEFAULT ''; -- '': others may be on their way beside it
CREATE UNIQUE INDEX control_actions_target ON control_actions (account_id, target)
    WHERE target <> '' AND state IN ('asked', 'sent', 'accepted');
