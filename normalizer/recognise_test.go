package normalizer

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"trunkline/event"
)

// Formats whose records show it in their keys: the records of their golden
// folders, less those that are broken, are recognised without a header.
func TestRecogniseTellsTheGoldenRecordsApart(t *testing.T) {
	for _, f := range formats {
		if f == &own {
			continue // only its header makes a record ours
		}
		paths, _ := filepath.Glob("testdata/" + f.name + "/*.in.jsonl")
		total, right := 0, 0
		for _, path := range paths {
			in, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for line := range bytes.Lines(in) {
				if bytes.HasPrefix(normalizeOne(t, f.topic(), f.name, line), []byte("DEAD")) {
					continue
				}
				total++
				if name, ok := Recognise(f.topic(), line); ok && name == f.name {
					right++
				} else {
					t.Logf("%s: taken for %q: %.120s", f.name, name, line)
				}
			}
		}
		if total == 0 || right*10 < total*8 {
			t.Errorf("%s: %d of %d recognised", f.name, right, total)
		}
	}
}

func TestOwnEventsAreNeverRecognised(t *testing.T) {
	record := []byte(`{"event":"call.progress","account_id":"acme","timestamp":1795169706}`)
	if name, ok := Recognise(event.TopicRaw, record); ok {
		t.Errorf("taken for %q", name)
	}
}

func TestTopicOfEachFormat(t *testing.T) {
	for name, want := range map[string]string{
		"svc.cc": event.TopicRaw, "kazoo.acdc": event.TopicRaw, "svc.cdr": event.TopicCDRRaw,
		"kazoo.cdr": event.TopicCDRRaw, "freeswitch.json_cdr": event.TopicCDRRaw,
		event.FormatOwn: "", "nope": "", "": "",
	} {
		if got, ok := Topic(name); got != want || ok != (want != "") {
			t.Errorf("%q: got %q, %v", name, got, ok)
		}
	}
	if len(Formats()) != len(formats) {
		t.Error("Formats does not list all")
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
		{"nope", `{}`, "", "unknown_format"},
	} {
		got, err := Account(c.format, []byte(c.record))
		kind := ""
		if no, ok := err.(*Rejection); ok {
			kind = string(no.Kind)
		}
		if got != c.want || kind != c.kind {
			t.Errorf("%s %s: got %q, %v", c.format, c.record, got, err)
		}
	}
}
