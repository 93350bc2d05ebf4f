package audit

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"time"

	"trunkline/internal/sqldb"
)

// ChainEntry is an entry of the chain. Its JSON is a record of the topic audit.
type ChainEntry struct {
	Entry
	Seq  int64  `json:"seq"`  // 1, 2, 3, …
	Prev string `json:"prev"` // hash of entry Seq-1; "" for the first
	Hash string `json:"hash"`
}

// computeHash returns the hash of the entry: SHA-256, in hexadecimal, of the texts seq,
// prev, id, at (Unix milliseconds), account_id, actor, address, action, target and
// outcome, each preceded by its length in bytes and a colon.
func (c *ChainEntry) computeHash() string {
	var text []byte
	for _, field := range []string{
		strconv.FormatInt(c.Seq, 10), c.Prev, c.ID, strconv.FormatInt(c.At.UnixMilli(), 10),
		c.AccountID, c.Actor, c.Address, string(c.Action), c.Target, c.Outcome,
	} {
		text = strconv.AppendInt(text, int64(len(field)), 10)
		text = append(text, ':')
		text = append(text, field...)
	}

	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// head is the state of the chain.
type head struct {
	seq        int64
	hash       string
	prunedSeq  int64 // number of the newest entry that retention deleted
	prunedHash string
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

const entryColumns = `id, at, account_id, actor, address, action, target, outcome`

func scanEntry(scan sqldb.ScanFunc, extra ...any) (Entry, error) {
	var e Entry
	var at int64
	err := scan(append([]any{&e.ID, &at, &e.AccountID, &e.Actor, &e.Address, &e.Action, &e.Target, &e.Outcome},
		extra...)...)
	e.At = Moment{time.UnixMilli(at)}
	return e, err
}

const (
	chainBatch = 1000 // entries chained in one transaction
	maxBatches = 100  // in one call of ChainPending or publishChain, so that Run does its other work too
)

var chainColumns = []string{"seq", "id", "at", "account_id", "actor", "address", "action", "target", "outcome", "prev",
	"hash"}

// ChainPending moves the pending entries into the chain.
func (l *Log) ChainPending(ctx context.Context) error {
	for range maxBatches {
		var pending int
		err := l.db.QueryRowContext(ctx, `SELECT COUNT(*) FROM audit_pending`).Scan(&pending)
		if err != nil {
			return sqldb.Wrap(err, "counting pending audit entries")
		}

		l.metrics.pending.Set(float64(pending))
		if pending == 0 {
			return nil
		}

		chained, err := l.chainBatch(ctx)
		if err != nil {
			return err
		}

		for _, e := range chained {
			if e.isCLI() {
				l.logEntry(ctx, e.Entry, true)
			}
		}
	}

	// More may be pending: Run goes on with it after its other work.
	l.wakeChain()
	return nil
}

// chainBatch moves the oldest pending entries into the chain.
func (l *Log) chainBatch(ctx context.Context) (chained []ChainEntry, err error) {
	err = l.db.BulkTx(ctx, func(tx *sqldb.BulkTx) error {
		h, err := lockHead(ctx, tx)
		if err != nil {
			return err
		}

		rows, err := tx.QueryContext(ctx, `DELETE FROM audit_pending WHERE id IN
			(SELECT id FROM audit_pending ORDER BY at, id LIMIT $1) RETURNING `+entryColumns, chainBatch)
		chained, err = sqldb.Collect(rows, err, "taking pending audit entries",
			func(scan sqldb.ScanFunc) (ChainEntry, error) {
				e, err := scanEntry(scan)
				return ChainEntry{Entry: e}, err
			})
		if err != nil || len(chained) == 0 {
			return err
		}

		// RETURNING has no order.
		slices.SortFunc(chained,
			func(a, b ChainEntry) int { return cmp.Or(a.At.Compare(b.At.Time), cmp.Compare(a.ID, b.ID)) })
		for i := range chained {
			c := &chained[i]
			h.seq++
			c.Seq, c.Prev = h.seq, h.hash
			c.Hash = c.computeHash()
			h.hash = c.Hash
		}

		err = tx.CopyIn(ctx, "audit_entries", chainColumns, len(chained), func(i int) []any {
			c := &chained[i]
			return []any{c.Seq, c.ID, c.At.UnixMilli(), c.AccountID, c.Actor, c.Address, string(c.Action), c.Target,
				c.Outcome, c.Prev, c.Hash}
		})
		if err != nil {
			return sqldb.Wrap(err, "extending the audit log's chain")
		}

		_, err = tx.ExecContext(ctx, `UPDATE audit_chain SET seq = $1, hash = $2 WHERE id = 1`, h.seq, h.hash)
		return sqldb.Wrap(err, "moving the audit log's head")
	})

	return chained, err
}

// entriesAfter returns up to limit entries of the chain after the number seq.
func (l *Log) entriesAfter(ctx context.Context, seq int64, limit int) ([]ChainEntry, error) {
	rows, err := l.db.QueryContext(ctx, `SELECT `+entryColumns+`, seq, prev, hash FROM audit_entries
		WHERE seq > $1 ORDER BY seq LIMIT $2`, seq, limit)
	return sqldb.Collect(rows, err, "reading the audit log's chain", scanChained)
}

func scanChained(scan sqldb.ScanFunc) (ChainEntry, error) {
	var c ChainEntry
	var err error
	c.Entry, err = scanEntry(scan, &c.Seq, &c.Prev, &c.Hash)
	return c, err
}
