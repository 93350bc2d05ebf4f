package api

import (
	"encoding/json"
	"strings"
	"testing"
)

type policyView struct {
	Success       bool           `json:"success"`
	Config        map[string]any `json:"config"`
	InheritedFrom string         `json:"inherited_from"`
}

func TestWhichCallsAreRecordedIsInherited(t *testing.T) {
	e := newEnv(t)
	admin := e.as("admin", "demo")
	below := withHeader(admin, "X-Account-ID", "sub")
	var got policyView
	e.ask(200, "GET", recordingPolicyPath, admin, "", &got)

	if !got.Success || len(got.Config) != 0 {
		t.Errorf("without a policy: %+v", got)
	}

	w := e.ask(200, "PUT", recordingPolicyPath, admin,
		`{"mode":"all","queues":["sales"],"announce":true,"retention_days":90,"queue_retention":[{"queue_id":"sales","retention_days":7}]}`,
		nil)
	tag := w.Header().Get("ETag")
	got = policyView{}
	e.ask(200, "GET", recordingPolicyPath, below, "", &got)

	if got.Config["mode"] != "all" || got.InheritedFrom != "demo" {
		t.Errorf("below: %+v", got)
	}

	text, err := json.Marshal(got.Config)
	must(t, err)
	e.ask(200, "PUT", recordingPolicyPath, withHeader(admin, "If-Match", tag), string(text), nil) // GET, edit, PUT
	e.ask(412, "PUT", recordingPolicyPath, withHeader(admin, "If-Match", `"another"`), `{"mode":"off"}`, nil)
	e.ask(304, "GET", recordingPolicyPath, withHeader(admin, "If-None-Match", tag), "", nil)
	e.ask(200, "PUT", recordingPolicyPath, below, `{"mode":"off"}`, nil)
	got = policyView{}
	e.ask(200, "GET", recordingPolicyPath, below, "", &got)

	if got.Config["mode"] != "off" || got.InheritedFrom != "" {
		t.Errorf("below, with its own: %+v", got)
	}

	for body, want := range map[string]string{
		`{}`: "mode", `{"mode":"sometimes"}`: "mode", `{"mode":"all","queues":[""]}`: "queues[0]",
		`{"mode":"all","retention_days":-1}`: "retention_days",
		`{"mode":"all","announce":"yes"}`:    "announce", `{"mode":"all","extra":1}`: "extra",
		`{"mode":"all","queue_retention":[{"queue_id":"a","retention_days":99999}]}`: "queue_retention[0].retention_days",
	} {
		if w := e.ask(400, "PUT", recordingPolicyPath, admin, body, nil); !strings.Contains(w.Body.String(),
			`"field":"`+want+`"`) {
			t.Errorf("%s: %s", body, w.Body)
		}
	}
}

// The announcement of recordings is a recording of the account, which nothing deletes from then on.
func TestARecordingAnnouncesRecordings(t *testing.T) {
	e := newEnv(t)
	admin, key := e.as("admin", "demo"), e.recorderHeader()
	wav := "RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x07\x00\x01\x00\x40\x1f\x00\x00\x40\x1f\x00\x00\x01\x00\x08\x00data\x00\x00\x00\x00"
	e.ask(201, "PUT", recordingsPath+"/greeting", withHeader(key, "Content-Type", "audio/wav"),
		wav+strings.Repeat("\x2b", 8000), nil)
	e.ask(201, "PUT", recordingsPath+"/long", key, wav+strings.Repeat("\x2b", 8000*31), nil)
	e.ask(201, "PUT", recordingsPath+"/text", key, "not audio", nil)

	for _, id := range []string{"none", "long", "text"} {
		w := e.ask(400, "PUT", recordingPolicyPath, admin, `{"mode":"all","announce":true,"announcement":"`+id+`"}`, nil)
		if !strings.Contains(w.Body.String(), `"field":"announcement"`) {
			t.Errorf("%s: %s", id, w.Body)
		}
	}

	e.ask(400, "PUT", recordingPolicyPath, admin, `{"mode":"all","announcement":"greeting"}`, nil)
	e.ask(200, "PUT", recordingPolicyPath, admin, `{"mode":"all","announce":true,"announcement":"greeting"}`, nil)
	e.ask(409, "DELETE", recordingsPath+"/greeting", key, "", nil)
	w := e.ask(200, "GET", recordingPolicyPath, admin, "", nil)
	if !strings.Contains(w.Body.String(), `"announcement":"greeting"`) {
		t.Errorf("%s", w.Body)
	}
}
