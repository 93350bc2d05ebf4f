package stats

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"time"

	"trunkline/event"
)

// openInterval is an agent's row whose message is not produced yet: the value of a
// record with the kind open_interval. It begins with the row, and ends with the first
// event at least closeAfter after the end of the interval, which triggers the message.
type openInterval struct {
	header

	Seen int64 `json:"seen"` // the event that created it
}

// Performance is an AGENT_PERFORMANCE message to produce: the row of an agent,
// closeAfter after the end of its interval.
type Performance struct {
	Account  string
	Row      []byte // the message's data
	Identity event.Identity
}

// TakePerformances returns the messages that became due since the last call.
func (f *Fold) TakePerformances() []Performance {
	due := f.performances
	f.performances = nil
	return due
}

// completeInterval ends an open interval and creates the message of its row.
func (f *Fold) completeInterval(o *openInterval) {
	if r, ok := f.entries[o.rowKey()].(*AgentRow); ok {
		f.performances = append(f.performances, f.performanceOf(r))
	}
	f.remove(o)
}

func (o *openInterval) rowKey() key {
	k := o.key
	k.kind = kindAgent
	return k
}

func (f *Fold) performanceOf(r *AgentRow) Performance {
	account := r.key.account.Value()
	agent := sha256.Sum256([]byte(account + "|" + r.key.id.Value())) // an id may be longer than a run, or not ASCII
	run := "stats-" + f.rules.Interval.String() + "-" + hex.EncodeToString(agent[:16])
	return Performance{Account: account, Row: f.encode(r),
		Identity: event.Identity{Run: run, Number: uint64(r.key.start / f.intervalSeconds())}}
}

// nextOverdue returns the entry whose message an event with the id by would trigger first,
// among those after behind in the order of the timers; nil: none.
func (f *Fold) nextOverdue(by event.ID, behind *header) (first entry) {
	if len(f.timers) == 0 || f.timers[0].commonHeader().due > by {
		return nil
	}

	for _, e := range f.timers {
		switch e := e.(type) {
		case *openInterval:
		case *agent:
			if e.isLoggedOut() || f.agentExpiry(e) <= by {
				continue
			}
		default:
			continue
		}

		h := e.commonHeader()
		if h.due <= by && (first == nil || before(h, first.commonHeader())) && (behind == nil || before(behind, h)) {
			first = e
		}
	}

	return first
}

// preview returns the message of an entry returned by nextOverdue, without changing the
// fold.
func (f *Fold) preview(of entry) Performance {
	k := of.commonHeader().key
	if a, ok := of.(*agent); ok {
		k.start = f.intervalStart(a.CreditedMS)
	}

	k.kind = kindAgent
	r := f.copyOfRow(k)
	// The time in the current state is not in the row yet: Advance would add it with the next event.
	if a, ok := f.entries[key{k.account, k.id, 0, kindOpenAgent}].(*agent); ok && !a.isLoggedOut() {
		end := (k.start + f.intervalSeconds()) * 1000
		r.add(a.State, a.Reason, max(0, end-max(a.CreditedMS, k.start*1000)))
	}

	return f.performanceOf(r)
}

// copyOfRow returns a copy of an agent's row, or an empty one.
func (f *Fold) copyOfRow(k key) *AgentRow {
	r, ok := f.entries[k].(*AgentRow)
	if !ok {
		return &AgentRow{header: header{key: k}}
	}
	c := *r
	c.BreakMSByReason = maps.Clone(r.BreakMSByReason)
	return &c
}

// openIntervalOf adds the open interval of a new row.
func (f *Fold) openIntervalOf(r *AgentRow) {
	k := r.key
	k.kind = kindOpenInterval
	f.add(&openInterval{header: header{key: k}, Seen: int64(f.lastFolded)})
}

// intervalDue returns the id from which the interval that begins at start is closed.
func (f *Fold) intervalDue(start int64) event.ID {
	return event.ID((start+f.intervalSeconds())*int64(time.Second)) + event.ID(closeAfter)
}
