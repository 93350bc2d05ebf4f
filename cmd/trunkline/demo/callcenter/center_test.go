package callcenter

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/format/registry"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func play(seed uint64, n int) []Event {
	center := New("demo", seed)
	events := make([]Event, n)
	for i := range events {
		events[i] = center.Next(noon.Add(time.Duration(i) * 200 * time.Millisecond))
	}
	return events
}

func TestTheSeedDecidesEverything(t *testing.T) {
	one, same, other := play(7, 500), play(7, 500), play(8, 500)
	differ := false
	for i := range one {
		if one[i].Format != same[i].Format || !bytes.Equal(one[i].JSON, same[i].JSON) {
			t.Fatalf("event %d: %s and %s", i, one[i].JSON, same[i].JSON)
		}
		differ = differ || !bytes.Equal(one[i].JSON, other[i].JSON)
	}

	if !differ {
		t.Error("another seed gave the same")
	}
}

func TestEverythingHappens(t *testing.T) {
	var all strings.Builder
	formats := make(map[string]int)
	for _, e := range play(1, 3000) {
		formats[e.Format]++
		all.Write(e.JSON)
	}

	for _, format := range []string{"svc.cc", "generic", "freeswitch.callcenter"} {
		if formats[format] < 100 {
			t.Errorf("%d of %s", formats[format], format)
		}
	}

	for _, sign := range []string{
		`"entered"`, `"offered"`, `"answered"`, `"missed"`, `"transferred"`, `"ended"`, `"abandoned"`,
		"AGENT_LOGIN", "AGENT_LOGOUT", "AGENT_BREAK_START", "AGENT_BREAK_END", "AGENT_TRANSFER",
		"member-queue-start", "agent-offering", "bridge-agent-start", "bridge-agent-fail", "member-queue-end",
		"agent-status-change", "agent-state-change", `"CC-Cause":"Cancel"`, `"CC-Cause":"Terminated"`,
	} {
		if !strings.Contains(all.String(), sign) {
			t.Errorf("%s never happens", sign)
		}
	}
}

// callEvent has the fields of a call event (docs/topics.md).
type callEvent struct {
	AccountID string `json:"Account-ID"`
	QueueID   string `json:"Queue-ID"`
	Type      string
	CDR       struct {
		Channel struct {
			Conference struct {
				Energy float64 `json:"Energy-Level"`
				Ghost  *bool   `json:"Member-Ghost"`
				Type   string  `json:"Member-Type"`
				ID     float64 `json:"Member-ID"`
			} `json:"Conference-Channel-Vars"`
			Custom struct {
				AccountID string `json:"Account-ID"`
				BridgeID  string `json:"Bridge-ID"`
			} `json:"Custom-Channel-Vars"`
		} `json:"channel"`
		CallID       string `json:"Call-ID"`
		ConferenceID string `json:"Conference-ID"`
		Event        string
	}
	Customer struct {
		Name   string `json:"customer_callerid_name"`
		Number string `json:"customer_callerid_number"`
		UUID   string `json:"customer_uuid"`
	} `json:"customer_info"`
	History []historyEntry `json:"history"`
}

func (e callEvent) complete() bool {
	conference, custom := e.CDR.Channel.Conference, e.CDR.Channel.Custom
	for _, text := range []string{
		e.QueueID, conference.Type, custom.BridgeID, e.CDR.CallID, e.CDR.ConferenceID, e.CDR.Event,
		e.Customer.Name, e.Customer.Number, e.Customer.UUID,
	} {
		if text == "" {
			return false
		}
	}

	return e.AccountID == "demo" && custom.AccountID == "demo" && conference.Energy > 0 && conference.Ghost != nil &&
		conference.ID > 0 && len(e.History) > 0 && e.History[0].Event == "entered"
}

func TestCallEventsHaveTheSpecificationsShape(t *testing.T) {
	seen := 0
	for _, e := range play(3, 1000) {
		if !json.Valid(e.JSON) || e.JSON[0] != '{' {
			t.Fatalf("not an object: %s", e.JSON)
		}
		if e.Format != "svc.cc" || !bytes.Contains(e.JSON, []byte(`"svc_cc_queue_on_call_event"`)) {
			continue
		}

		seen++
		decoder := json.NewDecoder(bytes.NewReader(e.JSON))
		decoder.DisallowUnknownFields()
		var call callEvent
		if err := decoder.Decode(&call); err != nil || !call.complete() {
			t.Fatalf("%v: %s", err, e.JSON)
		}
	}

	if seen < 100 {
		t.Errorf("only %d", seen)
	}
}

func TestEventsAreOfKnownFormats(t *testing.T) {
	for _, e := range play(3, 1000) {
		format, ok := registry.Lookup(e.Format)
		if !ok || format.Topic != event.TopicRaw {
			t.Fatalf("%s is no format of %s", e.Format, event.TopicRaw)
		}
		if found, _, err := registry.Recognise(format.Topic, e.JSON, new(registry.Scratch)); found != format {
			t.Fatalf("recognised as %v, %v: %s", found, err, e.JSON)
		}
		if account, err := format.NamedAccount(e.JSON); err != nil ||
			account != "demo" && e.Format != "freeswitch.callcenter" {
			t.Fatalf("account %q, %v: %s", account, err, e.JSON)
		}
	}
}

func TestFreeSwitchValuesAreStrings(t *testing.T) {
	for _, e := range play(3, 1000) {
		var keys map[string]string
		if e.Format == "freeswitch.callcenter" && json.Unmarshal(e.JSON, &keys) != nil {
			t.Fatalf("%s", e.JSON)
		}
	}
}
