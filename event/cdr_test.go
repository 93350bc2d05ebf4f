package event

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
)

func TestCDRFieldsAreTheRow(t *testing.T) {
	var row CDR
	for i := range CDRFields() {
		f := &CDRFields()[i]
		switch f.Kind {
		case CDRText:
			*f.Text(&row) = f.Name
			if f.Max < MaxCDRID || f.Max > MaxCDRText {
				t.Errorf("%s: at most %d bytes", f.Name, f.Max)
			}
		case CDRTime:
			*f.Time(&row) = 7
		case CDRSeconds:
			seconds := int64(7)
			*f.Seconds(&row) = &seconds
		case CDRObject:
			*f.Object(&row) = json.RawMessage(`{}`)
		}
	}

	text, err := json.Marshal(&row)
	if err != nil {
		t.Fatal(err)
	}

	var members map[string]any
	if err := json.Unmarshal(text, &members); err != nil {
		t.Fatal(err)
	}

	for _, f := range CDRFields() {
		if got, ok := members[f.Name]; !ok || f.Kind == CDRText && got != f.Name {
			t.Errorf("%s is %v in %s", f.Name, got, text)
		}
	}

	if len(members) != len(CDRFields()) {
		t.Errorf("%d fields, %d members", len(CDRFields()), len(members))
	}

	empty, _ := json.Marshal(&CDR{})
	members = nil
	_ = json.Unmarshal(empty, &members)

	for _, f := range CDRFields() {
		if _, written := members[f.Name]; written != f.Required {
			t.Errorf("%s: required %t, written when unknown %t", f.Name, f.Required, written)
		}
	}
}

func TestCheckNamesTheFieldThatCannotBeStored(t *testing.T) {
	good := CDR{ID: "202611-c", AccountID: "acme", CallID: "c", InteractionID: "c",
		CustomSIPHeaders: json.RawMessage(`{"a":"b"}`),
		BillingSeconds:   new(int64(31_622_400))}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}

	for want, change := range map[string]func(*CDR){
		"call_id: missing":                    func(r *CDR) { r.CallID = "" },
		"presence_id: longer than 255 bytes":  func(r *CDR) { r.PresenceID = strings.Repeat("x", 256) },
		"from: longer than 1024 bytes":        func(r *CDR) { r.From = strings.Repeat("x", 1025) },
		"media_server: holds a NUL character": func(r *CDR) { r.MediaServer = "a\x00" },
		"custom_sip_headers: holds a NUL character": func(r *CDR) {
			r.CustomSIPHeaders = json.RawMessage(
				`{"a":"\u0000"}`)
		},
		"custom_channel_vars: want an object": func(r *CDR) {
			r.CustomChannelVars = json.RawMessage(
				`[]`)
		},
		"billing_seconds: not between 0 s and 31622400 s": func(r *CDR) {
			r.BillingSeconds = new(
				int64(math.MaxInt64))
		},
		"duration_seconds: not between 0 s and 31622400 s": func(r *CDR) { r.DurationSeconds = new(int64(31_622_401)) },
		"ringing_seconds: not between 0 s and 31622400 s":  func(r *CDR) { r.RingingSeconds = new(int64(-1)) },
	} {
		row := good
		change(&row)
		var e *CDRError
		if err := row.Check(); !errors.As(err, &e) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
