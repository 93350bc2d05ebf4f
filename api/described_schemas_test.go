package api

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	yaml "go.yaml.in/yaml/v3"

	"trunkline/audit"
	"trunkline/event"
	"trunkline/event/state"
	"trunkline/stats"
)

// schema compiles one of the JSON Schemas, which may refer to the others.
func schema(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	const base = "https://trunkline.test/schemas/"
	compiler := jsonschema.NewCompiler()
	entries, err := descriptions.ReadDir("schemas")
	must(t, err)

	for _, entry := range entries {
		data, err := descriptions.ReadFile("schemas/" + entry.Name())
		must(t, err)
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
		must(t, err)
		must(t, compiler.AddResource(base+entry.Name(), doc))
	}

	compiled, err := compiler.Compile(base + name)
	must(t, err)
	return compiled
}

func validateText(t *testing.T, s *jsonschema.Schema, text []byte) error {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	must(t, err)
	return s.Validate(value)
}

func TestMessagesAreWhatTheirSchemaSays(t *testing.T) {
	s := schema(t, "cc_evt.json")
	for _, kind := range event.Types() {
		m := event.Message{
			ID: event.NextID(0, 1_795_169_706_190, 3), Type: kind, AccountID: "demo", Timestamp: 1_795_169_706,
			Data: []byte(`{"any":["thing"]}`),
			Metadata: event.Metadata{Source: "apikey:k", OriginalFormat: "generic", ProcessedAt: 1_795_169_707,
				QueueID: "q"},
		}
		if err := validateText(t, s, m.Append(nil)); err != nil {
			t.Errorf("%s: %v", kind, err)
		}

		m.Metadata.Facts = event.Facts{
			Name: event.NameQueueCallAnswered, AgentID: "a", AgentName: "n", QueueID: "q", CallID: "c",
			InteractionID:     "i",
			OriginationCallID: "o", Caller: "1", Callee: "2", State: event.Talking, Reason: "r",
			PreviousState: event.Ringing,
			PreviousSince: 1, WaitMS: event.MillisOf(0), TalkMS: event.MillisOf(1), TimestampMS: 2,
			AgentState: event.Talking, Contact: "sip:1",
			Agent: &event.AgentReport{Presence: event.Break, Activity: event.ActivityNone, Reason: "r",
				Device: event.DeviceIdle, InCall: true, Paused: true, PausedSince: 1, WrapUpUntilMS: 1000},
		}
		m.Metadata.QueueID = ""

		if err := validateText(t, s, m.Append(nil)); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}

	const row = `{"account_id":"a","agent_id":"1","interval_start":900,"interval_seconds":900,"logged_in_ms":1,"available_ms":1,"talking_ms":0,"wrap_up_ms":0,"break_ms":0,"offered":0,"answered":0,"no_answer":0}`
	performance := event.Message{ID: event.NextID(0, 1_795_169_706_190, 3), Type: event.AgentPerformance,
		AccountID: "a",
		Timestamp: 1800, Data: []byte(row),
		Metadata: event.Metadata{Source: "stats", OriginalFormat: event.FormatPerformance, ProcessedAt: 1860,
			Facts: event.Facts{Name: event.NameOther, AgentID: "1"}}}
	must(t, validateText(t, s, performance.Append(nil)))
	performance.Data = []byte(`{"account_id":"a"}`)

	for _, wrong := range []string{
		string(performance.Append(nil)),
		`{}`,
		`{"id":"cc_evt_1","type":"AGENT_LOGIN","account_id":"a","timestamp":1,"data":{},"metadata":{"source":"","original_format":"","processed_at":1}}`,
		`{"id":"cc_evt_1795169706190966784","type":"NOPE","account_id":"a","timestamp":1,"data":{},"metadata":{"source":"","original_format":"","processed_at":1}}`,
		`{"id":"cc_evt_1795169706190966784","type":"AGENT_LOGIN","account_id":"a","timestamp":1,"data":[],"metadata":{"source":"","original_format":"","processed_at":1}}`,
	} {
		if validateText(t, s, []byte(wrong)) == nil {
			t.Errorf("the schema takes %s", wrong)
		}
	}
}

// The goldens of every format with a call event are what the schema of the specified shape
// says, and so are those of agents' states; normalizer/testdata/stories has the members alone.
func TestCallEventsOfEveryPlatformAreWhatTheSpecificationSays(t *testing.T) {
	schemas := map[event.Type]*jsonschema.Schema{event.QueueCall: schema(t, "call_event.json"),
		event.AgentState: schema(t, "agent_state_event.json")}
	seen := map[string]int{}
	goldens, err := filepath.Glob("../format/*/testdata/*/*.want.jsonl")
	must(t, err)

	for _, file := range goldens {
		// the source's own members, of which some are not whole
		if strings.HasSuffix(file, "svc.cc/vocabulary.want.jsonl") {
			continue
		}

		text, err := os.ReadFile(file)
		must(t, err)
		for line := range bytes.Lines(text) {
			var m struct {
				Type     event.Type
				Metadata struct{ Facts *event.Facts }
			}
			// a dead letter, a call record
			if json.Unmarshal(line, &m) != nil || schemas[m.Type] == nil || m.Metadata.Facts == nil {
				continue
			}
			if err := validateText(t, schemas[m.Type], line); err != nil {
				t.Errorf("%s: %v\n%s", file, err, line)
			}

			seen[string(m.Type)+" "+filepath.Base(filepath.Dir(file))]++
		}
	}

	for _, format := range []string{"freeswitch.callcenter", "asterisk.ami", "kazoo.acdc", "kazoo.qubicle", "svc.cc",
		"generic", "freeswitch.resync"} {
		if seen[string(event.QueueCall)+" "+format] == 0 || seen[string(event.AgentState)+" "+format] == 0 {
			t.Errorf("%s: no golden of both types: %v", format, seen)
		}
	}

	stories, err := filepath.Glob("../normalizer/testdata/stories/*.want.jsonl")
	must(t, err)
	for _, file := range stories {
		text, err := os.ReadFile(file)
		must(t, err)
		for line := range bytes.Lines(text) {
			m := event.Message{ID: event.NextID(0, 1_795_169_706_190, 3), Type: event.QueueCall, AccountID: "acme",
				Timestamp: 1, Data: bytes.TrimSpace(line),
				Metadata: event.Metadata{Source: "s", OriginalFormat: "f", ProcessedAt: 1}}
			if err := validateText(t, schemas[event.QueueCall], m.Append(nil)); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}

	if len(stories) < 10 {
		t.Errorf("%d stories", len(stories))
	}

	for _, wrong := range []string{`{}`,
		`{"Account-ID":"a","Queue-ID":null,"Type":"t","CDR":{},"customer_info":{},"history":[]}`} {
		m := event.Message{ID: event.NextID(0, 1_795_169_706_190, 3), Type: event.QueueCall, AccountID: "acme",
			Data: []byte(wrong)}
		if validateText(t, schemas[event.QueueCall], m.Append(nil)) == nil {
			t.Errorf("the schema takes %s", wrong)
		}
	}
}

// The schema of the facts has the names and fields that there are, and no other.
func TestTheSchemaOfTheFactsIsComplete(t *testing.T) {
	text, err := descriptions.ReadFile("schemas/facts.json")
	must(t, err)
	var described struct {
		AdditionalProperties *bool
		Properties           map[string]struct{ Enum []event.Name }
	}
	must(t, json.Unmarshal(text, &described))

	if names := described.Properties["name"].Enum; !slices.Equal(names, event.Names()) {
		t.Errorf("the schema has the names %v, want %v", names, event.Names())
	}

	facts := reflect.TypeFor[event.Facts]()
	for i := range facts.NumField() {
		tag, _, _ := strings.Cut(facts.Field(i).Tag.Get("json"), ",")
		if _, ok := described.Properties[tag]; !ok && tag != "-" {
			t.Errorf("the schema has no field %q", tag)
		}
		delete(described.Properties, tag)
	}

	for field := range described.Properties {
		t.Errorf("the schema has a field %q that facts do not have", field)
	}

	s := schema(t, "facts.json")
	for _, wrong := range []string{`{}`, `{"name":"agent.nap"}`, `{"name":"other","state":"asleep"}`,
		`{"name":"other","agent_id":""}`, `{"name":"other","wait_ms":-1}`} {
		if validateText(t, s, []byte(wrong)) == nil {
			t.Errorf("the schema takes %s", wrong)
		}
	}
}

func TestStatesAreWhatTheirSchemaSays(t *testing.T) {
	s := schema(t, "cc_state.json")
	id := event.NextID(0, 1_795_169_706_190, 3)
	facts := event.Facts{Name: event.NameQueueCallAnswered, AgentID: "1002", AgentName: "Ann", QueueID: "q",
		CallID: "c", InteractionID: "i",
		OriginationCallID: "o", Caller: "1", Callee: "2", State: event.Talking, Reason: "r",
		PreviousState: event.Waiting, PreviousSince: 1,
		WaitMS: event.MillisOf(0), TalkMS: event.MillisOf(1), TimestampMS: 1_795_169_706_190}
	full := state.Entry{AccountID: "demo", Kind: state.Call, ID: "c", EventID: id, Since: 1, Facts: facts,
		Source: "feed:pbx", Queues: []string{"q"}, AfterCall: event.Break, EnteredMS: 1, AnsweredMS: 2,
		LegOutlivesVisit: true, Ringing: []string{"1002"},
		History: &state.History{Steps: []state.Step{{Name: event.NameQueueCallOffered, AgentID: "1002",
			AgentName: "Ann", QueueID: "q"}}, VisitID: "v"}, Contacts: []string{"sip:1"},
		KnownAgent: &state.KnownAgent{Presence: event.Break, Reason: "r", Activity: event.ActivityRinging,
			Device: event.DeviceIdle,
			Members: []state.Member{{QueueID: "q", InCall: true, Paused: true, Reason: "r", PausedSince: 1,
				WrapUpUntilMS: 1000}}, Calls: []state.AgentCall{{ID: "c", Ringing: true}}}}
	least := state.Entry{AccountID: "demo", Kind: state.Agent, ID: "7", EventID: id,
		Facts: event.Facts{Name: event.NameAgentQueueJoin}}
	position, begun := state.Position{EventID: id, Offset: 1, TopicID: "t", SourcePosition: "0:2", EventPosition: "0:1",
		Since: 2, StateOffset: 1, Incomplete: true}, state.Position{LeaderEpoch: -1}
	partition := state.NewPartition()
	partition.CompleteAndFold(
		&state.Event{ID: id, Account: "demo",
			Identity: event.Identity{Run: "0b7bbb3e-5f0c-11f0-bd41-0242ac120002", Number: 4711}})

	numbers := partition.Values()[0].Append(nil)
	for _, value := range [][]byte{full.Append(nil), least.Append(nil), position.Append(nil), begun.Append(nil),
		numbers} {
		if err := validateText(t, s, value); err != nil {
			t.Errorf("%s: %v", value, err)
		}
	}

	for _, wrong := range []string{
		`{}`, `{"kind":"position"}`, `{"kind":"position","offset":-1,"leader_epoch":0,"topic_id":"","since":0}`,
		strings.Replace(string(full.Append(nil)), `"call"`, `"queue"`, 1),
		strings.Replace(string(full.Append(nil)), `"talking"`, `"dreaming"`, 1),
	} {
		if validateText(t, s, []byte(wrong)) == nil {
			t.Errorf("the schema takes %s", wrong)
		}
	}

	var described struct {
		Defs map[string]recordSchema `yaml:"$defs"`
	}
	text, err := descriptions.ReadFile("schemas/cc_state.json")
	must(t, err)
	must(t, yaml.Unmarshal(text, &described))

	for name, value := range map[string][]byte{"entry": full.Append(nil), "position": position.Append(nil),
		"numbers": numbers} {
		var object map[string]any
		must(t, json.Unmarshal(value, &object))
		if got, want := slices.Sorted(maps.Keys(described.Defs[name].Properties)), slices.Sorted(
			maps.Keys(object)); !slices.Equal(got, want) {
			t.Errorf("%s has %v, described are %v", name, want, got)
		}
	}
}

func TestPlacementsAreWhatTheirSchemaSays(t *testing.T) {
	s := schema(t, "cc_accounts.json")
	for _, p := range []event.AccountPartition{{AccountID: "demo", Partition: 1023, Offset: 1}, {Partition: 0}} {
		must(t, validateText(t, s, p.Value()))
	}

	for _, wrong := range []string{`{}`, `{"partition":1024,"offset":0}`, `{"partition":0,"offset":-1}`,
		`{"account_id":"a b","partition":0,"offset":0}`} {
		if validateText(t, s, []byte(wrong)) == nil {
			t.Errorf("the schema takes %s", wrong)
		}
	}
}

func TestFiguresAreWhatTheirSchemaSays(t *testing.T) {
	s := schema(t, "cc_stats.json")
	f := stats.NewFold(stats.Rules{Interval: 15 * time.Minute, Late: 48 * time.Hour,
		Thresholds: func(string, string, int64) stats.Thresholds { return stats.DefaultThresholds() }})
	id := event.NextID(0, 1_795_169_706_190, 3)

	for i, facts := range []event.Facts{
		{Name: event.NameAgentLogin, AgentID: "1002", State: event.Available},
		{Name: event.NameQueueCallEntered, QueueID: "q", CallID: "c"},
		{Name: event.NameQueueCallAnswered, QueueID: "q", CallID: "c", AgentID: "1002"},
		{Name: event.NameAgentBreakStart, AgentID: "1002", State: event.Break, Reason: "lunch"},
		{Name: event.NameAgentBreakEnd, AgentID: "1002", State: event.Available},
	} {
		f.Apply(&state.Event{ID: id, Account: "demo", Timestamp: 1_795_169_706 + int64(i), Facts: facts})
		id += event.MaxPartitions
	}

	var described struct {
		Defs map[string]recordSchema `yaml:"$defs"`
	}
	text, err := descriptions.ReadFile("schemas/cc_stats.json")
	must(t, err)
	must(t, yaml.Unmarshal(text, &described))

	records := 0
	f.Flush(func(r stats.Record) {
		records++
		if err := validateText(t, s, r.Value); err != nil {
			t.Errorf("%s: %s: %v", r.Key, r.Value, err)
		}

		var object map[string]any
		must(t, json.Unmarshal(r.Value, &object))
		kind := strings.Split(r.Key, "|")[1]
		if strings.HasPrefix(kind, "open_") {
			return
		}
		if got, want := slices.Sorted(maps.Keys(described.Defs[kind].Properties)), slices.Sorted(
			maps.Keys(object)); !slices.Equal(got, want) {
			t.Errorf("%s has %v, described are %v", kind, want, got)
		}
	})

	if records != 5 {
		t.Errorf("%d records", records)
	}

	position := state.Position{EventID: id, Offset: 1, TopicID: "t"}
	must(t, validateText(t, s, position.Append(nil)))
	if validateText(t, s, []byte(`{"account_id":"demo"}`)) == nil {
		t.Error("the schema takes a row without figures")
	}
}

func TestAuditEntriesAreWhatTheirSchemaSays(t *testing.T) {
	s := schema(t, "audit.json")
	e := newEnv(t)
	full := audit.ChainEntry{
		Entry: e.audit.Entry(audit.WithCaller(t.Context(), audit.Caller{Actor: "user:u", Address: "203.0.113.7"}),
			audit.RecordingRead, "demo", "recording:r"),
		Seq: 2, Prev: strings.Repeat("0a", 32), Hash: strings.Repeat("f9", 32),
	}
	first := audit.ChainEntry{Entry: e.audit.Entry(t.Context(), audit.LoginFailed, "", ""), Seq: 1,
		Hash: strings.Repeat("0a", 32)}
	var text []byte

	for _, entry := range []audit.ChainEntry{first, full} {
		var err error
		text, err = json.Marshal(entry)
		must(t, err)
		if err := validateText(t, s, text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}

	for _, wrong := range []string{`{}`, strings.Replace(string(text), `"seq":2`, `"seq":0`, 1),
		strings.Replace(string(text), `"f9f9`, `"F9f9`, 1)} {
		if validateText(t, s, []byte(wrong)) == nil {
			t.Errorf("the schema takes %s", wrong)
		}
	}

	var described recordSchema
	schemaText, err := descriptions.ReadFile("schemas/audit.json")
	must(t, err)
	must(t, yaml.Unmarshal(schemaText, &described))
	var object map[string]any
	must(t, json.Unmarshal(text, &object))
	fields := slices.Sorted(maps.Keys(object))
	slices.Sort(described.Required)

	if got := slices.Sorted(maps.Keys(described.Properties)); !slices.Equal(got, fields) ||
		!slices.Equal(described.Required, fields) {
		t.Errorf("an entry has %v, described are %v", fields, got)
	}
}

func TestCallRecordsAreWhatTheirSchemaSays(t *testing.T) {
	s := schema(t, "cdr.json")
	five := int64(5)
	full := event.CDR{
		ID: "202611-c", AccountID: "demo", CallID: "c", InteractionID: "i", OriginationCallID: "o",
		Direction: "inbound",
		From:      "1", To: "2", CallerIDName: "n", CallerIDNumber: "1", CalleeIDName: "m", CalleeIDNumber: "2",
		Timestamp: 1_795_169_706, AnsweredTime: 1_795_169_707, EndedTime: 1_795_169_712,
		DurationSeconds: &five, BillingSeconds: &five, RingingSeconds: &five, HangupCause: "NORMAL_CLEARING",
		PresenceID: "1001", OtherLegCallID: "d", CustomSIPHeaders: []byte(`{"svc_call_type":"clicktocall"}`),
		CustomChannelVars: []byte(`{}`), RecordingID: "r", MediaServer: "s",
	}

	for _, row := range []event.CDR{full,
		{ID: "202611-c", AccountID: "demo", CallID: "c", InteractionID: "i", Timestamp: 1}} {
		text, err := json.Marshal(row)
		must(t, err)
		if err := validateText(t, s, text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// recordSchema is the part of a schema that event.CDRFields says.
type recordSchema struct {
	Required   []string                      `yaml:"required"`
	Properties map[string]struct{ Type any } `yaml:"properties"`
}

func TestCallRecordFieldsAreDescribed(t *testing.T) {
	schemaText, err := descriptions.ReadFile("schemas/cdr.json")
	must(t, err)
	var row recordSchema
	must(t, yaml.Unmarshal(schemaText, &row)) // JSON is YAML
	openapi, err := descriptions.ReadFile("openapi.yaml")
	must(t, err)
	var doc struct {
		Components struct{ Schemas map[string]recordSchema }
	}
	must(t, yaml.Unmarshal(openapi, &doc))
	types := map[event.CDRKind]string{event.CDRText: "string", event.CDRTime: "integer", event.CDRSeconds: "integer",
		event.CDRObject: "object"}

	for where, described := range map[string]recordSchema{"schemas/cdr.json": row,
		"openapi.yaml": doc.Components.Schemas["CallRecord"]} {
		for _, f := range event.CDRFields() {
			if got := described.Properties[f.Name].Type; got != types[f.Kind] {
				t.Errorf("%s: %s is described as %q, want %q", where, f.Name, got, types[f.Kind])
			}
			if slices.Contains(described.Required, f.Name) != f.Required {
				t.Errorf("%s: %s required: want %t", where, f.Name, f.Required)
			}

			delete(described.Properties, f.Name)
		}

		for name := range described.Properties {
			t.Errorf("%s: %s is no field of a call record", where, name)
		}
	}
}

func TestGenericEventsAreWhatTheirSchemaSays(t *testing.T) {
	s := schema(t, "generic.json")
	for text, want := range map[string]bool{
		`{"type":"AGENT_LOGIN"}`: true,
		`{"type":"AGENT_LOGIN","account_id":"a","timestamp":1,"data":{"x":1},"more":1}`: true,
		`{"type":"nope"}`: false,
		`{}`:              false,
		`{"type":"AGENT_LOGIN","account_id":"' OR 1=1"}`: false,
	} {
		if got := validateText(t, s, []byte(text)) == nil; got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
