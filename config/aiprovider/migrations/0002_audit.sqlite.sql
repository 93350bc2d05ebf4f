-- needs 0002
-- The audit log has one place for all packages (package audit); what was
-- recorded here before goes there.
INSERT INTO audit_pending (id, at, account_id, actor, address, action, target, outcome)
    SELECT lower(hex(randomblob(16))), at, account_id, who, '',
        CASE action WHEN 'create' THEN 'ai_provider.create' WHEN 'replace' THEN 'ai_provider.update' ELSE 'ai_provider.delete' END,
        'ai_provider:' || provider_id, 'ok'
    FROM ai_provider_audit;
DROP TABLE ai_provider_audit;
