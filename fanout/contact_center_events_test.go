package fanout

import (
	"encoding/json"
	"strings"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/kafka"
)

// happening is one event of a contact center, as a normalizer writes it.
type happening struct {
	partition int
	source    int64
	at        time.Time
	account   string
	typ       event.Type
	facts     event.Facts
}

// happen appends events and their state; one that came before is a repeat and
// has the same bytes.
func (l *memoryLog) happen(all ...happening) {
	for _, e := range all {
		l.appendHappening(e)
	}
}

// appendHappening appends an event, and returns its id and its facts, which the state has completed.
func (l *memoryLog) appendHappening(e happening) (id event.ID, facts event.Facts) {
	l.mu.Lock()
	defer l.mu.Unlock()

	s := &l.states[e.partition]
	if s.fold == nil {
		l.writeState(e.partition)
	}

	position := event.Position{Partition: e.partition, Offset: e.source}
	r := kafka.Record{Topic: event.TopicEvents, Partition: e.partition}
	for _, before := range l.partitions[e.partition] {
		if string(before.Header(event.HeaderPosition)) == position.String() {
			r = before
		}
	}

	if r.Value == nil {
		id = event.NextID(s.fold.Last(), e.at.UnixMilli(), e.partition)
		completed := state.Event{ID: id, Account: e.account, Timestamp: e.at.Unix(), Source: "test", Facts: e.facts}
		s.fold.CompleteAndFold(&completed)
		facts = completed.Facts
		m := event.Message{ID: id, Type: e.typ, AccountID: e.account, Timestamp: e.at.Unix(),
			Data: json.RawMessage("{}"),
			Metadata: event.Metadata{Source: "test", OriginalFormat: "generic", ProcessedAt: e.at.Unix(),
				Facts: facts}}
		memberOf := ""

		if agent := s.fold.Find(state.Key{Account: e.account, Kind: state.Agent, ID: facts.AgentID}); agent != nil {
			memberOf = strings.Join(agent.Queues, event.QueueSeparator)
		}

		r.Time, r.Value = time.UnixMilli(id.Milli()), m.Append(nil)
		for _, h := range []struct{ key, value string }{
			{event.HeaderType, string(e.typ)}, {event.HeaderAccount, e.account},
			{event.HeaderOriginalFormat, "generic"}, {event.HeaderPosition, position.String()},
			{event.HeaderName, string(facts.Name)}, {event.HeaderAgent, facts.AgentID},
			{event.HeaderQueue, facts.QueueID}, {event.HeaderCall, facts.CallID}, {event.HeaderAgentQueues, memberOf},
		} {
			if h.value != "" {
				r.Headers = append(r.Headers, kafka.Header{Key: h.key, Value: []byte(h.value)})
			}
		}
	}

	r.Offset = int64(len(l.partitions[e.partition]))
	l.partitions[e.partition] = append(l.partitions[e.partition], r)
	l.writeState(e.partition)
	l.grown.Broadcast()

	return id, facts
}

func loggedIn(account, agent string, source int64) happening {
	return happening{source: source, at: time.Now(), account: account, typ: event.AgentLogin,
		facts: event.Facts{Name: event.NameAgentLogin, AgentID: agent, State: event.Available}}
}
