package format

import (
	"encoding/json"
	"slices"
	"strings"

	"trunkline/event"
	"trunkline/internal/jsonscan"
)

// ResyncFormat returns a format of corrections. After each connect a live feed requests a
// platform snapshot, compares it with the state, and sends one record for each
// difference, in place of the missed event:
//
//	{"resync": "asterisk", "account_id": "acme", "timestamp": 1795169706.25,
//	 "facts": {"name": "agent.state", "agent_id": "PJSIP/1002", "state": "break"}}
//
// resync is the platform, which identifies a record without a format header. account_id and
// timestamp are optional, as in generic. facts has the fields of metadata.facts and needs a
// name; an unknown name, state or field is rejected. Its reason becomes "resync", but for
// "parked"; the platform's own reason of a state is in facts.agent. The normalizer adds
// previous_state, previous_since and other facts from the state, as for any other event.
//
// extension is Format.ExtensionOf of the platform.
func ResyncFormat(name string, extension func(agentID string) string) Format {
	return Format{
		Name: name, Topic: event.TopicRaw, ExtensionOf: extension,
		Keys: CallEventKeys(jsonscan.KeysOf("account_id", "timestamp", "facts")),
		ReadAccount: func(f *Fields) (string, error) {
			return StrictText(f[resyncAccount], "account_id")
		},
		DecodeEvent: func(f *Fields) (Event, error) {
			timestampMS, err := StrictTimestamp(f[resyncTime], "timestamp")
			if err != nil {
				return Event{}, err
			}

			facts, err := readFacts(f[resyncFacts])
			if err != nil {
				return Event{}, err
			}

			facts.TimestampMS = timestampMS
			if facts.Reason != event.ReasonParked {
				facts.Reason = event.ReasonResync
			}

			return Event{Type: TypeOf(facts.Name), Timestamp: timestampMS / 1000, Facts: facts}, nil
		},
	}
}

// Slots of the keys of a resync format in the fields of a record.
const (
	resyncAccount = iota
	resyncTime
	resyncFacts
)

// readFacts reads the member facts strictly.
func readFacts(v jsonscan.Value) (facts event.Facts, err error) {
	if v.Kind() == jsonscan.None {
		return facts, RejectMissing("facts")
	}
	if v.Kind() != jsonscan.Object {
		return facts, RejectType("facts", "an object")
	}

	v.Each(func(key []byte, value jsonscan.Value) {
		if err == nil {
			err = readFact(&facts, string(key), value)
		}
	})

	if err == nil && facts.Name == "" {
		err = RejectMissing("facts.name")
	}

	return facts, err
}

// readFact reads one field of the facts strictly.
func readFact(facts *event.Facts, key string, v jsonscan.Value) error {
	field := "facts." + key
	text := func(to *string) (err error) {
		*to, err = StrictText(v, field)
		return err
	}

	state := func(to *event.State) error {
		s, err := StrictText(v, field)
		*to = event.State(s)
		if err == nil && !slices.Contains(eventStates, *to) {
			return Rejectf(WrongType, "%s: not a state", field)
		}
		return err
	}

	millis := func(to *event.Millis) error {
		if v.Kind() != jsonscan.Number || json.Unmarshal(v, to) != nil || !to.Known {
			return RejectType(field, "milliseconds")
		}
		return nil
	}

	switch key {
	case "name":
		name, err := StrictText(v, field)
		facts.Name = event.Name(name)
		if err == nil && !slices.Contains(eventNames, facts.Name) {
			return Rejectf(WrongType, "%s: not a name of a fact", field)
		}
		return err
	case "agent_id":
		return text(&facts.AgentID)
	case "agent_name":
		return text(&facts.AgentName)
	case "queue_id":
		return text(&facts.QueueID)
	case "call_id":
		return text(&facts.CallID)
	case "interaction_id":
		return text(&facts.InteractionID)
	case "origination_call_id":
		return text(&facts.OriginationCallID)
	case "caller":
		return text(&facts.Caller)
	case "callee":
		return text(&facts.Callee)
	case "reason":
		return text(&facts.Reason)
	case "state":
		return state(&facts.State)
	case "contact":
		return text(&facts.Contact)
	case "position":
		n, _ := Integer(v)
		facts.Position = event.PlaceOf(n)
		if v.Kind() != jsonscan.Number || facts.Position == 0 {
			return RejectType(field, "a place in a queue")
		}
		return nil
	case "agent":
		facts.Agent = &event.AgentReport{}
		if v.Kind() != jsonscan.Object || json.Unmarshal(v, facts.Agent) != nil {
			return RejectType(field, "an object with what was said of the agent")
		}
		return checkAgentReport(facts.Agent)
	case "wait_ms":
		return millis(&facts.WaitMS)
	case "talk_ms":
		return millis(&facts.TalkMS)
	}

	return Rejectf(WrongType, "facts: has an unknown field, or one that only the state sets")
}

// checkAgentReport checks the values of a platform's report about an agent.
func checkAgentReport(report *event.AgentReport) error {
	for _, word := range [...]struct {
		field, value string
		known        []string
	}{
		{"presence", string(report.Presence), []string{"available", "break", "offline", "other"}},
		{"activity", string(report.Activity), []string{"none", "not_ready", "ringing", "talking", "wrap_up"}},
		{"device", string(report.Device),
			[]string{"idle", "ringing", "in_use", "busy", "wrap_up", "unreachable", "unknown"}},
	} {
		if word.value != "" && !slices.Contains(word.known, word.value) {
			return Rejectf(WrongType, "facts.agent.%s: not one of %s", word.field, strings.Join(word.known, ", "))
		}
	}

	return nil
}

var (
	eventNames  = event.Names()
	eventStates = []event.State{
		event.Offline, event.Available, event.Ringing, event.Talking, event.WrapUp, event.Break, event.OtherState,
		event.Waiting, event.Held, event.Ended, event.Registered, event.Unregistered,
	}
)
