package registry

import (
	"errors"
	"testing"

	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/jsonscan"
)

func TestEachFormatHasOneReaderAndItsTopic(t *testing.T) {
	for _, f := range Formats() {
		if f.ReadAccount == nil || (f.DecodeEvent != nil) != (f.Topic == event.TopicRaw) ||
			(f.DecodeCDR != nil) != (f.Topic == event.TopicCDRRaw) {
			t.Errorf("%s: topic %q, Event %t, CDR %t", f.Name, f.Topic, f.DecodeEvent != nil, f.DecodeCDR != nil)
		}

		for key, slot := range f.Keys {
			slot = jsonscan.Slot(slot)
			if slot >= len(format.Fields{}) {
				t.Errorf("%s: %s has slot %d of %d", f.Name, key, slot, len(format.Fields{}))
			}
		}

		if found, ok := Lookup(f.Name); !ok || found != f {
			t.Errorf("%s is not found by its name", f.Name)
		}
	}

	if f, ok := Lookup(event.FormatOwn); !ok || !f.Internal {
		t.Error("our own format is accepted over HTTP")
	}
	if _, ok := Lookup("nope"); ok {
		t.Error("an unknown format is found")
	}
}

func TestAccountIsTheOneTheRecordNames(t *testing.T) {
	for _, c := range []struct{ format, record, want, kind string }{
		{"svc.cc", `{"Account-ID":"a"}`, "a", ""},
		{"svc.cc", `{"account_id":"a"}`, "", ""},
		{"svc.cc", `{"Account-ID":1}`, "", "wrong_type"},
		{"generic", `{"account_id":"a","type":"nonsense"}`, "a", ""},
		{"freeswitch.event", `{"variable_accountcode":"a"}`, "", ""},
		{"freeswitch.event", `{"variable_ecallmgr_Account-ID":"a%2Db"}`, "a-b", ""},
		{"freeswitch.json_cdr", `{"variables":{"ecallmgr_Account-ID":"a"}}`, "a", ""},
		{"freeswitch.json_cdr", `{"variables":{"accountcode":"a"}}`, "", ""},
		{"kazoo.webhook", `{"custom_channel_vars":{"account_id":"a"}}`, "a", ""},
		{"kazoo.qubicle", `{"action":"event","data":{"account_id":"a"}}`, "a", ""},
		{"kazoo.cdr", `{"Account-ID":"a","Custom-Channel-Vars":{"Account-ID":"b"}}`, "a", ""},
		{"svc.cdr", `{"account_id":null}`, "", "wrong_type"},
		{"svc.cc", `{`, "", "invalid_json"},
	} {
		f, _ := Lookup(c.format)
		got, err := f.NamedAccount([]byte(c.record))
		kind := ""

		if no, ok := err.(*format.Rejection); ok {
			kind = string(no.Kind)
		}
		if got != c.want || kind != c.kind {
			t.Errorf("%s %s: got %q, %v", c.format, c.record, got, err)
		}
	}
}

// An id with a NUL could not be stored in PostgreSQL, so the record becomes a dead letter.
func TestIDsWithANULAreRejected(t *testing.T) {
	for _, c := range []struct{ format, record, field string }{
		{"svc.cc", `{"Account-ID":"a","Type":"AGENT_LOGIN","Agent-ID":"7\u0000"}`, "agent_id"},
		{"svc.cc", `{"Account-ID":"a","Type":"svc_cc_queue_on_call_event","Queue-ID":"\u0000"}`, "queue_id"},
		{"generic", `{"type":"AGENT_LOGIN","data":{"agent_id":"7\u0000"}}`, "agent_id"},
		{"freeswitch.event", `{"Event-Name":"CHANNEL_ANSWER","Unique-ID":"%00"}`, "call_id"},
		{"freeswitch.callcenter", `{"CC-Action":"agent-status-change","CC-Agent":"7%00","CC-Agent-Status":"Available"}`,
			"agent_id"},
		{"asterisk.ami", `{"Event":"QueueMemberAdded","Queue":"q\u0000","Interface":"PJSIP/7","Status":"1"}`,
			"queue_id"},
		{"kazoo.call_event", `{"Event-Category":"call_event","Event-Name":"CHANNEL_ANSWER","Call-ID":"\u0000"}`,
			"call_id"},
		{"asterisk.resync", `{"resync":"asterisk","facts":{"name":"agent.state","agent_id":"7\u0000","state":"break"}}`,
			"agent_id"},
		{"generic", `{"type":"AGENT_LOGIN","data":{"agent_id":"7\u0001","agent_name":"\u0000"}}`, ""},
	} {
		f, _ := Lookup(c.format)
		_, err := f.ReadEvent([]byte(c.record), new(format.Fields))
		rejection, _ := errors.AsType[*format.Rejection](err)
		if want := c.field + ": holds a NUL character"; c.field != "" &&
			(rejection == nil || *rejection != format.Rejection{Kind: format.OutOfRange, Reason: want}) {
			t.Errorf("%s %s: got %v, want %s", c.format, c.record, err, want)
		} else if c.field == "" && err != nil {
			t.Errorf("%s %s: %v", c.format, c.record, err)
		}
	}
}

// A duration that no call has is unknown, and nothing overflows.
func TestDurationsThatNoCallHasAreUnknown(t *testing.T) {
	for _, seconds := range []string{"-1", "-9223372036854776", "-9223372036854775808", "31622401", "9223372036854775",
		"9223372036854775807", "9e18", "1e300"} {
		for formatName, record := range map[string]string{
			"asterisk.ami": `{"Event":"AgentComplete","Queue":"q","Interface":"PJSIP/7","Uniqueid":"1.1","HoldTime":"` +
				seconds + `","TalkTime":"` + seconds + `"}`,
			"freeswitch.event": `{"Event-Name":"CHANNEL_HANGUP_COMPLETE","Unique-ID":"c","variable_billsec":"` +
				seconds + `"}`,
			"kazoo.call_event": `{"Event-Category":"call_event","Event-Name":"CHANNEL_DESTROY","Call-ID":"c","Billing-Seconds":` +
				seconds + `}`,
		} {
			f, _ := Lookup(formatName)
			e, err := f.ReadEvent([]byte(record), new(format.Fields))
			if err != nil || e.Facts.WaitMS.Known || e.Facts.TalkMS.Known {
				t.Errorf("%s %s: %+v, %v", formatName, record, e.Facts, err)
			}
		}
	}
}

// specified are the members of a call event, which the last fields are for.
var specified = []string{"Account-ID", "Queue-ID", "Type", "CDR", "customer_info", "history"}

// Format.Scan clears as many fields as the format has keys, and those of a call event.
func TestEverySlotIsCleared(t *testing.T) {
	for _, f := range Formats() {
		var fields format.Fields
		for name, slot := range f.Keys {
			slot = jsonscan.Slot(slot)
			if slot >= len(f.Keys) && slot < len(fields)-len(specified) || slot >= len(fields) {
				t.Errorf("%s: key %q has slot %d of %d keys, %d fields", f.Name, name, slot, len(f.Keys), len(fields))
			}
		}

		for i := range fields {
			fields[i] = []byte(`"left over"`)
		}

		if err := f.Scan([]byte(`{}`), &fields); err != nil {
			t.Fatal(err)
		}

		for name, slot := range f.Keys {
			if fields[jsonscan.Slot(slot)] != nil {
				t.Errorf("%s: %q has a value from the record before", f.Name, name)
			}
		}
	}
}
