package cdrindex

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"trunkline/event"
	"trunkline/internal/jsonscan"
	"trunkline/internal/kafka"
	"trunkline/internal/testservice/testdb"
)

func TestDecodeRefusesWhatIsNoRow(t *testing.T) {
	good := call("acme", "c", november)
	with := func(change func(*event.CDR)) kafka.Record {
		row := good
		change(&row)
		return record(row, 0, 1)
	}

	raw := func(value string) kafka.Record { return kafka.Record{Value: []byte(value)} }
	for want, r := range map[string]kafka.Record{
		"not a call record's JSON":              raw(`{"id":`),
		"id: missing":                           raw(`{}`),
		"account_id: missing":                   with(func(r *event.CDR) { r.AccountID = "" }),
		"call_id: longer than 255 bytes":        with(func(r *event.CDR) { r.CallID = strings.Repeat("c", 10_000) }),
		"interaction_id: holds a NUL character": with(func(r *event.CDR) { r.InteractionID = "a\x00b" }),
		"from: longer than 1024 bytes":          with(func(r *event.CDR) { r.From = strings.Repeat("1", 1025) }),
		"timestamp: out of range":               with(func(r *event.CDR) { r.Timestamp = 1 }),
		"custom_sip_headers: want an object":    with(func(r *event.CDR) { r.CustomSIPHeaders = []byte(`[1]`) }),
		"custom_channel_vars: want an object":   with(func(r *event.CDR) { r.CustomChannelVars = []byte(`"x"`) }),
	} {
		if _, err := decodeEntry(&r, 0); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}

	tooLate := with(func(r *event.CDR) { r.Timestamp = maxStart })
	if _, err := decodeEntry(&tooLate, 0); err == nil {
		t.Error("a call of 2100 was taken")
	}
}

// A row is read as encoding/json writes it, and JSON that scanRow takes is that of a row.
func FuzzScanRow(f *testing.F) {
	full := call("acme", "c", november)
	full.DurationSeconds, full.CallerIDName = ptr(0), "Zoë \"Z\" \n\u2028"
	full.CustomSIPHeaders, full.CustomChannelVars = []byte(`{"a":"}\"{","b":{"c":[{}]}}`), []byte(`{}`)

	for _, value := range []string{
		string(record(full, 0, 1).Value), `{}`, `{"id":"a\n"}`, `{"timestamp":1,"timestamp":2}`, `{"timestamp":01}`,
		`{"timestamp":1.0}`,
		`{"timestamp":-1}`, `{"duration_seconds":null}`, `{"custom_sip_headers":{"a":}}`, `{"id":"a"}x`,
		`{"id":"` + "\xff" + `"}`, `{"id":1}`, `{"timestamp":"1"}`, `[]`,
		`{"timestamp":99999999999999999999}`, `{"id":"a",}`, `{"custom_sip_headers":{"a":1},"id":"b"}`,
		`{"custom_sip_headers":[]}`,
	} {
		f.Add([]byte(value))
	}

	f.Fuzz(func(t *testing.T, value []byte) {
		var got, want, again event.CDR
		err := json.Unmarshal(value, &want)
		if scanRow(value, &got) == nil && err != nil {
			t.Errorf("%s was taken: %v", value, err)
		}

		written, failed := json.Marshal(&want)
		tooDeep := failed == nil && jsonscan.Keys(nil).Scan(written, nil) != nil
		if err != nil || failed != nil || tooDeep {
			return
		}

		if err := scanRow(written, &again); err != nil || json.Unmarshal(written, &want) != nil ||
			!reflect.DeepEqual(again, want) {
			t.Errorf("%s\ngot  %+v\nwant %+v, %v", written, again, want, err)
		}
	})
}

func FuzzDecode(f *testing.F) {
	r := record(call("acme", "c", november), 0, 1)
	f.Add(r.Value, "0:1")
	f.Add([]byte(`{"id":"a","account_id":"b","call_id":"c","interaction_id":"d","timestamp":1795169718,"custom_sip_headers":null}`),
		"x")

	x := openIndex(f, Settings{}, testdb.SQLite(f))
	f.Fuzz(func(t *testing.T, value []byte, position string) {
		r := kafka.Record{Value: value, Headers: []kafka.Header{{Key: event.HeaderPosition, Value: []byte(position)}}}
		e, err := decodeEntry(&r, 0)
		if err != nil {
			return
		}

		if _, err := x.apply(context.Background(), batch{entries: []entry{e}, overwrite: true}); err != nil {
			t.Errorf("the database refuses what decode took: %v", err)
		}
	})
}
