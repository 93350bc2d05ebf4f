package stats

import (
	"unique"
)

// rows opens the rows of queues and agents in the table, and bounds what an account may have there.
type rows struct {
	table      *entryTable
	thresholds func(account, queue string, start int64) Thresholds // Rules.Thresholds
	max        int                                                 // Rules.MaxRows
	ignored    int64                                               // events: too late for a row, or the account has max rows
}

// isFull reports whether the account may not have one more row, agent or call like k.
func (r *rows) isFull(k key) bool {
	most := r.max
	if !k.kind.hasInterval() {
		most *= openPerRow
	}
	return r.max > 0 && r.table.rowCounts[k.rowGroup()] >= most
}

// ofQueue returns the row of a queue's interval, nil if it accepts no more events or
// the account may have no more rows.
func (r *rows) ofQueue(account, queue unique.Handle[string], start int64) *QueueRow {
	k := key{account, queue, start, kindQueue}
	if e, ok := r.table.entries[k]; ok {
		r.table.recordRowChange(k, e)
		return e.(*QueueRow)
	}

	if r.table.intervals.rowDue(start) <= r.table.last || r.isFull(k) {
		return nil
	}

	limits := r.thresholds(account.Value(), queue.Value(), start)
	row := &QueueRow{header: header{key: k}, ServiceLevelSeconds: limits.ServiceLevelSeconds,
		ShortAbandonSeconds: limits.ShortAbandonSeconds}
	r.table.add(row)

	return row
}

// ofAgent returns the row of an agent's interval, nil if it accepts no more events or
// the account may have no more rows. A new one begins an open interval.
func (r *rows) ofAgent(account, id unique.Handle[string], start int64) *AgentRow {
	k := key{account, id, start, kindAgent}
	if e, ok := r.table.entries[k]; ok {
		r.table.markDirty(k) // no alert looks at it
		return e.(*AgentRow)
	}
	if r.table.intervals.rowDue(start) <= r.table.last || r.isFull(k) {
		return nil
	}

	row := &AgentRow{header: header{key: k}}
	r.table.add(row)
	k.kind = kindOpenInterval
	r.table.add(&openInterval{header: header{key: k}, Seen: int64(r.table.last)})

	return row
}
