package cdrindex

import (
	"math"

	"trunkline/event"
	"trunkline/internal/report"
)

// cursor is a position between two rows. Rows are ordered by start and, within a second,
// by call id, which unlike a row's id no two rows of an account share.
type cursor struct {
	started int64
	call    string
}

// startOfList is the cursor before all rows.
var startOfList = cursor{started: math.MaxInt64}

func cursorAfter(row *event.CDR) cursor { return cursor{row.Timestamp, row.CallID} }

func (c cursor) startKey() string { return report.StartKey(c.started, c.call) }

// parseStartKey parses a result of key.
func parseStartKey(key string) (c cursor, ok bool) {
	if key == "" {
		return startOfList, true
	}
	c.started, c.call, ok = report.ParseStartKey(key, 2*event.MaxCDRID)
	return c, ok && c.started >= minStart && c.started < maxStart
}
