package stats

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"

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

// performances makes the messages of agents from the table.
type performances struct {
	table    *entryTable
	messages []Performance // created since Fold.TakePerformances
}

// complete ends an open interval and creates the message of its row.
func (p *performances) complete(o *openInterval) {
	if r, ok := p.table.entries[o.rowKey()].(*AgentRow); ok {
		p.messages = append(p.messages, p.messageOf(r))
	}
	p.table.remove(o)
}

func (o *openInterval) rowKey() key {
	k := o.key
	k.kind = kindAgent
	return k
}

func (p *performances) messageOf(r *AgentRow) Performance {
	account := r.key.account.Value()
	agent := sha256.Sum256([]byte(account + "|" + r.key.id.Value())) // an id may be longer than a run, or not ASCII
	run := "stats-" + p.table.intervals.length.String() + "-" + hex.EncodeToString(agent[:16])
	return Performance{Account: account, Row: p.table.encode(r),
		Identity: event.Identity{Run: run, Number: uint64(r.key.start / p.table.intervals.seconds())}}
}

// nextOverdue returns the entry whose message an event with the id by would trigger first,
// among those after behind in the order of the timers; nil: none.
func (p *performances) nextOverdue(by event.ID, behind *header) (first entry) {
	if p.table.timers.nextDue() > by {
		return nil
	}

	for _, e := range p.table.timers {
		switch e := e.(type) {
		case *openInterval:
		case *agent:
			if e.isLoggedOut() || p.table.intervals.agentExpiry(e) <= by {
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
func (p *performances) preview(of entry) Performance {
	k := of.commonHeader().key
	if a, ok := of.(*agent); ok {
		k.start = p.table.intervals.startOf(a.CreditedMS)
	}

	k.kind = kindAgent
	r := p.copyOfRow(k)
	// The time in the current state is not in the row yet: Advance would add it with the next event.
	if a, ok := p.table.entries[key{k.account, k.id, 0, kindOpenAgent}].(*agent); ok && !a.isLoggedOut() {
		end := (k.start + p.table.intervals.seconds()) * 1000
		r.add(a.State, a.Reason, max(0, end-max(a.CreditedMS, k.start*1000)))
	}

	return p.messageOf(r)
}

// copyOfRow returns a copy of an agent's row, or an empty one.
func (p *performances) copyOfRow(k key) *AgentRow {
	r, ok := p.table.entries[k].(*AgentRow)
	if !ok {
		return &AgentRow{header: header{key: k}}
	}
	c := *r
	c.BreakMSByReason = maps.Clone(r.BreakMSByReason)
	return &c
}
