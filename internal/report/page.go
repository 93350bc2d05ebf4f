package report

import (
	"cmp"
	"context"
	"encoding/base64"
	"io"
	"strconv"
	"strings"
)

// Page is a part of a list, newest first.
type Page[T any] struct {
	Data         []T    `json:"data"`
	PageSize     int    `json:"page_size"`
	NextStartKey string `json:"next_start_key,omitempty"` // "": the last page
}

// Cursor is a place in a list that is ordered by time and id: behind the row with them. The zero Cursor is the
// beginning.
type Cursor struct {
	Time int64 // in the list's unit
	ID   string
}

// Key returns the start_key of the cursor.
func (c Cursor) Key() string {
	id := cmp.Or(c.ID, "-") // of the sum of all queues
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(c.Time, 10) + "." + id))
}

const maxKeyBytes = 1024

// ParseCursor parses a result of Key; "" is the beginning.
func ParseCursor(key string) (c Cursor, ok bool) {
	if key == "" || len(key) > maxKeyBytes {
		return c, key == ""
	}

	text, err := base64.RawURLEncoding.DecodeString(key)
	if err != nil || !Storable(string(text)) {
		return c, false
	}

	first, id, _ := strings.Cut(string(text), ".")
	at, err := strconv.ParseInt(first, 10, 64)
	c = Cursor{at, id}

	// Only in the form of Key: the same place has one key.
	return c, err == nil && id != "" && c.Key() == key
}

// Filter is what the filters of all reports have.
type Filter struct {
	Account    string   // not a parameter: the caller's account, or an accessible one
	Visible    *Visible // not a parameter: what the caller's role sees
	Start, End int64    // Unix seconds, both included

	PageSize int    // 0: DefaultPage
	After    Cursor // of a page: behind which it begins
	CSV      bool   // the whole range, as CSV
}

// Rows are the rows of a report, newest first.
type Rows[R any] struct {
	Read func(ctx context.Context, after Cursor, limit int) ([]R, error) // returns at most limit rows after the cursor
	At   func(*R) Cursor                                                 // returns the cursor behind a row
}

// Page returns a page of the rows. Rows that arrive between two pages neither repeat nor hide others; newer ones are
// not shown.
func (r Rows[R]) Page(ctx context.Context, f Filter) (*Page[R], error) {
	size := cmp.Or(f.PageSize, DefaultPage)
	// One more than shown tells whether there is a next page.
	found, err := r.Read(ctx, f.After, size+1)
	if err != nil {
		return nil, err
	}

	page := &Page[R]{Data: found, PageSize: size}
	switch {
	case len(found) > size:
		page.Data, page.NextStartKey = found[:size], r.At(&found[size-1]).Key()
	case found == nil:
		page.Data = []R{} // an empty list, never null
	}

	return page, nil
}

// batchRows is the number of rows that Each reads at once.
const batchRows = 2000

// Each calls give with all rows. It reads them in batches, so that a slow reader holds neither memory nor a connection.
func (r Rows[R]) Each(ctx context.Context, give func(*R) error) error {
	var after Cursor
	for {
		found, err := r.Read(ctx, after, batchRows)
		if err != nil {
			return err
		}

		for i := range found {
			if err := give(&found[i]); err != nil {
				return err
			}
		}

		if len(found) < batchRows {
			return nil
		}

		after = r.At(&found[batchRows-1])
	}
}

// WriteCSV writes all rows as CSV (RFC 4180), as the function WriteCSV does.
func (r Rows[R]) WriteCSV(ctx context.Context, w io.Writer, header string,
	appendLine func([]byte, *R) []byte) (wrote bool, err error) {
	return WriteCSV(w, header, appendLine, func(give func(*R) error) error { return r.Each(ctx, give) })
}
