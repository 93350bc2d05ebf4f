CREATE INDEX origination_calls_by_account ON origination_calls (account_id) WHERE NOT live;
