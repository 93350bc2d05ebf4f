package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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

const entryColumns = `id, at, account_id, actor, address, action, target, outcome`

func scanEntry(scan sqldb.ScanFunc, extra ...any) (Entry, error) {
	var e Entry
	var at int64
	err := scan(append([]any{&e.ID, &at, &e.AccountID, &e.Actor, &e.Address, &e.Action, &e.Target, &e.Outcome},
		extra...)...)
	e.At = Moment{time.UnixMilli(at)}
	return e, err
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
