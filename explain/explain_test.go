package explain

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/fanout"
	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/webhook"
)

// topics are topics in memory, all of two partitions whose logs begin at first.
type topics struct {
	records map[string][2][]kafka.Record
	first   int64
}

func (l *topics) Partitions(context.Context, string) (int, error) { return 2, nil }

func (l *topics) Offsets(_ context.Context, topic string, p int) (int64, int64, error) {
	return l.first, int64(len(l.records[topic][p])), nil
}

func (l *topics) OffsetAt(_ context.Context, topic string, p int, at time.Time) (int64, error) {
	all := l.records[topic][p]
	for i := l.first; i < int64(len(all)); i++ {
		if !all[i].Time.Before(at) {
			return i, nil
		}
	}
	return int64(len(all)), nil
}

func (l *topics) Scan(_ context.Context, topic string, p int, from, to int64, each func(*kafka.Record)) error {
	for i := max(from, l.first); i < to; i++ {
		each(&l.records[topic][p][i])
	}
	return nil
}

func (l *topics) add(topic string, r kafka.Record) kafka.Record {
	if l.records == nil {
		l.records = map[string][2][]kafka.Record{}
	}
	all := l.records[topic]
	r.Topic, r.Offset = topic, int64(len(all[r.Partition]))
	all[r.Partition] = append(all[r.Partition], r)
	l.records[topic] = all
	return r
}

func headers(pairs ...string) (all []kafka.Header) {
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, kafka.Header{Key: pairs[i], Value: []byte(pairs[i+1])})
	}
	return all
}

// addEvent adds a raw record and the message of it, as the normalizer makes it.
func (l *topics) addEvent(at time.Time, account, format, key, data string, facts event.Facts, raw ...string) event.ID {
	return l.addEventOf(event.AgentState, at, account, format, key, data, data, facts, raw...)
}

// addEventOf adds a raw record and a message of that type with other data.
func (l *topics) addEventOf(typ event.Type, at time.Time, account, format, key, record, data string,
	facts event.Facts, raw ...string) event.ID {
	source := l.add(event.TopicRaw,
		kafka.Record{Partition: 1, Time: at, Key: []byte(key), Value: []byte(record), Headers: headers(raw...)})
	id := event.NextID(0, at.UnixMilli(), 1)

	if all := l.records[event.TopicEvents][1]; len(all) > 0 {
		last, _ := event.MessageID(all[len(all)-1].Value)
		id = event.NextID(last, at.UnixMilli(), 1)
	}

	m := event.Message{ID: id, Type: typ, AccountID: account, Data: json.RawMessage(data),
		Metadata: event.Metadata{OriginalFormat: format, Facts: facts}}
	l.add(event.TopicEvents,
		kafka.Record{Partition: 1, Time: time.UnixMilli(id.Milli()), Value: m.Append(nil), Headers: headers(
			event.HeaderType, string(m.Type), event.HeaderAccount, account, event.HeaderOriginalFormat, format,
			event.HeaderName, string(facts.Name), event.HeaderAgent, facts.AgentID,
			event.HeaderPosition, event.Position{Partition: 1, Offset: source.Offset}.String())})

	return id
}

// fakeOutcomes returns fixed outcomes for connections and webhooks, and stores the questions.
type fakeOutcomes struct {
	connections fanout.Question // the last one asked
	webhooks    webhook.Question
}

func (o *fakeOutcomes) Explain(_ context.Context, q fanout.Question) fanout.Report {
	o.connections = q
	return fanout.Report{Complete: true}
}

type fakeWebhooks struct{ *fakeOutcomes }

func (f fakeWebhooks) Explain(_ context.Context, q webhook.Question, _ *identity.Tree) ([]webhook.Explanation, error) {
	f.webhooks = q
	return []webhook.Explanation{{Outcome: webhook.OutcomeDelivered}}, nil
}

type fakeAccounts struct{}

func (fakeAccounts) Tree() *identity.Tree {
	return identity.NewTree(identity.Account{ID: "root"}, identity.Account{ID: "shop", ParentID: "root"},
		identity.Account{ID: "other"})
}

func newService(log Log) (*Service, *fakeOutcomes) {
	o := &fakeOutcomes{}
	return &Service{LogReader: log, Connections: o, Webhooks: fakeWebhooks{o}, Accounts: fakeAccounts{}}, o
}

const loginRecord = `{"type":"AGENT_LOGIN","data":{"agent_id":"7"}}`

func TestExplainTellsWhatAnEventWasMadeFrom(t *testing.T) {
	log := &topics{}
	s, asked := newService(log)
	at := time.UnixMilli(1_795_169_706_125)
	loggedIn := event.Facts{Name: event.NameAgentLogin, AgentID: "7", AgentName: "Ann", State: event.Available,
		PreviousState: event.Offline, PreviousSince: 5}
	byHeader := log.addEvent(at, "shop", "generic", "shop", loginRecord, loggedIn, event.HeaderFormat, "generic",
		event.HeaderSource, "apikey:k")
	byKeys := log.addEvent(at, "shop", "svc.cc", "",
		`{"Account-ID":"shop","Type":"svc_cc_queue_on_agent_state_event","Agent-ID":"7","Agent-State":"available"}`,
		event.Facts{Name: event.NameAgentLogin, AgentID: "7", State: event.Available})
	foreign := log.addEvent(at, "shop", "unknown", "", `{"account_id":"shop","x":1}`,
		event.Facts{Name: event.NameOther})
	feed := log.addEvent(at, "shop", "svc.cc", "shop",
		`{"Account-ID":"pbx.example","Type":"svc_cc_queue_on_agent_state_event"}`, event.Facts{Name: event.NameOther},
		event.HeaderFormat, "svc.cc", event.HeaderSource, "feed:pbx")

	for _, c := range []struct {
		id      event.ID
		format  Format
		account AccountFrom
		facts   map[string]FactFrom
	}{
		{byHeader, Format{"generic", FormatFromHeader}, AccountFromKey,
			map[string]FactFrom{"name": "record", "agent_id": "record", "state": "record",
				"agent_name": "state", "previous_state": "state", "previous_since": "state"}},
		{byKeys, Format{"svc.cc", FormatFromKeys}, AccountFromRecord,
			map[string]FactFrom{"name": "state", "agent_id": "record", "state": "record"}},
		{foreign, Format{"unknown", FormatFromNothing}, AccountFromRecord, map[string]FactFrom{"name": "record"}},
		{feed, Format{"svc.cc", FormatFromHeader}, AccountFromKey, map[string]FactFrom{"name": "record"}},
	} {
		e, err := s.Explain(t.Context(), Question{ID: c.id, Root: "root", Client: "c", User: "u"})
		if err != nil {
			t.Fatal(err)
		}

		facts := map[string]FactFrom{}
		for _, f := range e.Facts {
			facts[f.Name] = f.From
		}

		if e.Format != c.format || e.Account != (Account{"shop", c.account}) || !maps.Equal(facts, c.facts) ||
			!e.Raw.Available || !e.Raw.Time.Equal(at) {
			t.Errorf("%s: %+v %+v %v %+v", c.id, e.Format, e.Account, facts, e.Raw)
		}
		if q := asked.connections; q.EventID != c.id || q.Root != "root" || q.Client != "c" || q.User != "u" ||
			q.Message.AccountID != "shop" || q.Offset != e.Event.Position.Offset {
			t.Errorf("connections were asked %+v", q)
		}
		if asked.webhooks.EventID != c.id || asked.webhooks.Message != asked.connections.Message ||
			len(e.Webhooks) != 1 || !e.Delivery.Complete {
			t.Errorf("webhooks were asked %+v", asked.webhooks)
		}
	}

	raw := log.records[event.TopicRaw]
	raw[1][0].Value = []byte(`{}`) // the log was truncated and has another record there
	e, err := s.Explain(t.Context(), Question{ID: byHeader, Root: "shop"})
	if err != nil || e.Raw.Available || e.Raw.Position != "1:0" || e.Format.From != FormatFromUnknown ||
		e.Account.From != AccountFromUnknown || e.Facts[0].From != FactFromUnknown {
		t.Errorf("without its raw record: %+v, %v", e, err)
	}
}

// What the normalizer adds to the data of a call event, and U+FFFD for bytes that are not UTF-8, do not make
// the record another one; another record that has its offset now does not count.
func TestExplainFindsTheRecordOfDataThatDiffer(t *testing.T) {
	const entered = `{"Account-ID":"shop","Type":"svc_cc_queue_on_call_event","Queue-ID":"q","CDR":{"Call-ID":"c"}}`
	const members = `,"customer_info":{"customer_uuid":"c"},"history":[]}`
	const status = `{"Account-ID":"shop","Event-Name":"CHANNEL_CREATE","Caller-Caller-ID-Name":"`
	inQueue := event.Facts{Name: event.NameQueueCallEntered, QueueID: "q", CallID: "c"}
	open := strings.TrimSuffix(entered, "}")

	for name, c := range map[string]struct {
		typ         event.Type
		format      string
		raw, data   string
		facts       event.Facts
		isAvailable bool
	}{
		"members of the specification": {event.QueueCall, "svc.cc", entered, open + members, inQueue, true},
		"none are missing":             {event.QueueCall, "svc.cc", entered, entered, inQueue, true},
		"a line feed at the end":       {event.QueueCall, "svc.cc", entered + "\n", open + members, inQueue, true},
		"another record":               {event.QueueCall, "svc.cc", `{"x":1}`, open + members, inQueue, false},
		"an empty record":              {event.QueueCall, "svc.cc", `{}`, open + members, inQueue, false},
		"not an object":                {event.QueueCall, "svc.cc", `7`, open + members, inQueue, false},
		"not a call event":             {event.AgentState, "svc.cc", entered, open + members, inQueue, false},
		"a platform's text": {event.Custom, "freeswitch.event", status + "M\xfcller\"}", status + "M\uFFFDller\"}",
			event.Facts{Name: event.NameOther}, true},
		"a platform's text in a call event": {event.QueueCall, "freeswitch.event", status + "M\xfcller\"}",
			status + "M\uFFFDller\"" + members, event.Facts{Name: event.NameOther}, true},
		"text of others": {event.Custom, "generic", status + "M\xfcller\"}", status + "M\uFFFDller\"}",
			event.Facts{Name: event.NameOther}, false},
	} {
		t.Run(name, func(t *testing.T) {
			log := &topics{}
			s, _ := newService(log)
			id := log.addEventOf(c.typ, time.UnixMilli(1_795_169_706_125), "shop", c.format, "shop", c.raw, c.data,
				c.facts, event.HeaderFormat, c.format, event.HeaderSource, "apikey:k")

			e, err := s.Explain(t.Context(), Question{ID: id, Root: "root"})
			if err != nil || e.Raw.Available != c.isAvailable {
				t.Fatalf("%+v, %v", e.Raw, err)
			}

			format, account, fact := FormatFromUnknown, AccountFromUnknown, FactFromUnknown
			if c.isAvailable {
				format, account, fact = FormatFromHeader, AccountFromRecord, FactFromRecord
			}

			for _, f := range e.Facts {
				if f.Name == "call_id" && f.From != fact {
					t.Errorf("call_id from %s", f.From)
				}
			}

			if e.Format.From != format || e.Account.From != account {
				t.Errorf("%+v %+v", e.Format, e.Account)
			}
		})
	}
}

// An event of another account is not found, as one that does not exist; only the
// beginning of the log makes a difference, which is the same for everybody.
func TestWhatIsNotExplained(t *testing.T) {
	log := &topics{}
	s, asked := newService(log)
	at := time.UnixMilli(1_795_169_706_125)
	var ids []event.ID

	for i := range 200 { // more than are read at once; most with the same time
		ids = append(ids,
			log.addEvent(at.Add(time.Duration(i/190)*time.Second), "shop", "generic", "shop", loginRecord,
				event.Facts{Name: event.NameAgentLogin}))
	}

	log.add(event.TopicEvents,
		kafka.Record{Partition: 1, Time: at.Add(time.Hour), Value: []byte(`{"id":"cc_evt_1795173306125000705"}no JSON`),
			Headers: headers(event.HeaderAccount, "shop")})

	if e, err := s.Explain(t.Context(), Question{ID: ids[180], Root: "shop"}); err != nil ||
		e.Event.Position.Offset != 180 {
		t.Fatalf("%+v, %v", e, err)
	}

	*asked = fakeOutcomes{}
	var none string
	for name, q := range map[string]Question{
		"another account's":      {ID: ids[0], Root: "other"},
		"never given":            {ID: ids[0] - event.MaxPartitions/2*2 + event.MaxPartitions*300, Root: "shop"},
		"of the future":          {ID: event.FirstID(at.Add(24*time.Hour), 1), Root: "shop"},
		"of no partition":        {ID: event.FirstID(at, 2), Root: "shop"},
		"of an empty partition":  {ID: event.FirstID(at, 0), Root: "shop"},
		"of a program's garbage": {ID: 1795173306125000705, Root: "shop"},
	} {
		_, err := s.Explain(t.Context(), q)
		if fault.KindOf(err) != fault.KindNotFound || none != "" && none != err.Error() {
			t.Errorf("%s: %v, another one %s", name, err, none)
		} else {
			none = err.Error()
		}
	}

	log.first = 100
	for _, root := range []string{"shop", "other"} {
		if _, err := s.Explain(t.Context(), Question{ID: ids[50], Root: root}); fault.KindOf(err) != fault.KindGone {
			t.Errorf("before the log, asked by %s: %v", root, err)
		}
	}

	if asked.connections.EventID != 0 || asked.webhooks.EventID != 0 {
		t.Errorf("others were asked %+v", asked)
	}
}
