package audit

import (
	"context"

	"trunkline/internal/sqldb"
)

// head is the state of the chain.
type head struct {
	seq        int64 // number of the newest entry; 0: none
	hash       string
	prunedSeq  int64  // number of the newest entry that retention deleted
	prunedHash string // of that entry
}

const headColumns = `seq, hash, pruned_seq, pruned_hash`

func (h *head) scan(scan sqldb.ScanFunc) error {
	return scan(&h.seq, &h.hash, &h.prunedSeq, &h.prunedHash)
}

// readHead reads the state of the chain.
func (l *Log) readHead(ctx context.Context) (h head, err error) {
	err = h.scan(l.db.QueryRowContext(ctx, `SELECT `+headColumns+` FROM audit_chain`).Scan)
	return h, sqldb.Wrap(err, "reading the audit log's head")
}

// lockHead reads the state of the chain and locks it until the transaction ends.
func lockHead(ctx context.Context, tx *sqldb.BulkTx) (h head, err error) {
	err = h.scan(tx.QueryRowContext(ctx, `UPDATE audit_chain SET seq = seq WHERE id = 1 RETURNING `+headColumns).Scan)
	return h, sqldb.Wrap(err, "locking the audit log's head")
}
