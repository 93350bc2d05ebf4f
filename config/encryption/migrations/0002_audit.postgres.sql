-- needs 0002
-- The audit log has one place for all packages (package audit); what was
-- recorded here before goes there.
INSERT INTO audit_pending (id, at, account_id, actor, address, action, target, outcome)
    SELECT md5(random()::text || ctid::text), at, account_id, who, '', CASE action WHEN 'read' THEN 'encryption.read' ELSE 'encryption.update' END,
        'key_version:' || CAST(key_version AS TEXT), 'ok'
    FROM encryption_audit;
DROP TABLE encryption_audit;
