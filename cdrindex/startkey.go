package cdrindex

import (
	"encoding/base64"
	"errors"
	"math"
	"strconv"
	"strings"

	"trunkline/event"
	"trunkline/internal/report"
)

// cursor is a position between two rows. Rows
// are ordered by start and, within a second, by call id, which unlike a row's
// id no two rows of an account share.
type cursor struct {
	started int64
	call    string
}

// newest is before all rows.
var newest = cursor{started: math.MaxInt64}

func after(row *event.CDR) cursor { return cursor{row.Timestamp, row.CallID} }

func (c cursor) key() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(c.started, 10) + "." + c.call))
}

var errStartKey = errors.New("not a start key")

// parseStartKey parses a result of key. Returns errStartKey for anything else.
func parseStartKey(key string) (cursor, error) {
	if key == "" {
		return newest, nil
	}
	if len(key) > 2*event.MaxCDRID {
		return cursor{}, errStartKey
	}
	text, err := base64.RawURLEncoding.DecodeString(key)
	if err != nil || !report.Storable(string(text)) {
		return cursor{}, errStartKey
	}
	at, call, _ := strings.Cut(string(text), ".")
	c := cursor{call: call}
	c.started, err = strconv.ParseInt(at, 10, 64)
	if err != nil || call == "" || c.started < minStart || c.started >= maxStart || c.key() != key {
		return cursor{}, errStartKey
	}
	return c, nil
}
