package cdrindex

import (
	"fmt"
	"strings"
	"time"
)

// month is a calendar month in UTC, counted from year 0.
type month int

// monthOf returns the month of a time in Unix seconds.
func monthOf(unix int64) month {
	t := time.Unix(unix, 0).UTC()
	return month(t.Year()*12 + int(t.Month()) - 1)
}

// start is the month's first second. The month ends where the next one starts.
func (m month) start() int64 {
	return time.Date(int(m)/12, time.Month(int(m)%12+1), 1, 0, 0, 0, 0, time.UTC).Unix()
}

// partition returns the name of the table with the month's rows, in PostgreSQL.
func (m month) partition() string {
	return fmt.Sprintf("%s%04d%02d", partitionPrefix, int(m)/12, int(m)%12+1)
}

const partitionPrefix = rowsTable + "_"

// parsePartition returns the month of a partition.
func parsePartition(table string) (month, bool) {
	name, ok := strings.CutPrefix(table, partitionPrefix)
	start, err := time.Parse("200601", name)
	if !ok || err != nil {
		return 0, false
	}
	return monthOf(start.Unix()), true
}
