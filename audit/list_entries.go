package audit

import (
	"context"
	"fmt"
	"math"
	"slices"

	"trunkline/internal/fault"
	"trunkline/internal/report"
	"trunkline/internal/sqldb"
)

// Filter selects entries of an account. Texts match exactly; "" matches all.
type Filter struct {
	AccountID  string
	Start, End int64 // Unix seconds, both included
	Actor      string
	Action     Action

	PageSize int    // 0 for report.DefaultPage
	StartKey string // NextStartKey of another page; "" for the newest entries
}

// Page is one page of a filter's entries, newest first.
type Page = report.Page[Entry]

// KnownAction reports whether action is a defined action.
func KnownAction(action Action) bool { return slices.Contains(actions, action) }

// List returns a page of the chain's entries. Entries are in the chain about 0.1 s after
// they are recorded.
func (l *Log) List(ctx context.Context, f Filter) (*Page, error) {
	size := f.PageSize
	if size == 0 {
		size = report.DefaultPage
	}
	if size < 1 || size > report.MaxPage {
		return nil, fault.InvalidField("page_size", "out_of_range",
			fmt.Sprintf("must be a whole number from 1 to %d", report.MaxPage))
	}

	at, id, ok := parseStartKey(f.StartKey)
	if !ok {
		return nil, fault.InvalidField("start_key", "invalid", "must be a page's next_start_key")
	}
	if clean(f.AccountID) != f.AccountID || clean(f.Actor) != f.Actor || clean(string(f.Action)) != string(f.Action) {
		return &Page{Data: []Entry{}, PageSize: size}, nil // no entry has such a text
	}

	query := `SELECT ` + entryColumns +
		` FROM audit_entries WHERE account_id = $1 AND at BETWEEN $2 AND $3 AND (at, id) <= ($4, $5)`
	// Columns are in milliseconds, and the last second is included.
	args := []any{f.AccountID, f.Start * 1000, f.End*1000 + 999, at, id}

	for _, c := range [...]struct{ column, wanted string }{{"actor", f.Actor}, {"action", string(f.Action)}} {
		if c.wanted != "" {
			args = append(args, c.wanted)
			query += fmt.Sprintf(` AND %s = $%d`, c.column, len(args))
		}
	}

	args = append(args, size+1)
	query += fmt.Sprintf(` ORDER BY at DESC, id DESC LIMIT $%d`, len(args))
	rows, err := l.db.QueryContext(ctx, query, args...)
	found, err := sqldb.Collect(rows, err, "reading the audit log",
		func(scan sqldb.ScanFunc) (Entry, error) { return scanEntry(scan) })
	if err != nil {
		return nil, err
	}

	page := &Page{Data: found, PageSize: size}
	if page.Data == nil {
		page.Data = []Entry{} // an empty list, never null
	}
	if len(found) > size {
		page.Data, page.NextStartKey = found[:size], startKey(found[size])
	}

	return page, nil
}

func startKey(e Entry) string { return report.Cursor{Time: e.At.UnixMilli(), ID: e.ID}.Key() }

// lastID sorts after the id of every entry.
const lastID = "~"

func parseStartKey(key string) (at int64, id string, ok bool) {
	if key == "" {
		return math.MaxInt64, lastID, true
	}
	c, ok := report.ParseCursor(key)
	return c.Time, c.ID, ok && clean(c.ID) == c.ID
}
