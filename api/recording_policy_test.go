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
	admin := e.of("admin", "demo")
	below := withHeader(admin, "X-Account-ID", "sub")
	var got policyView
	e.want(200, "GET", callRecordingPath, admin, "", &got)

	if !got.Success || len(got.Config) != 0 {
		t.Errorf("without a policy: %+v", got)
	}

	w := e.want(200, "PUT", callRecordingPath, admin,
		`{"mode":"all","queues":["sales"],"announce":true,"retention_days":90,"queue_retention":[{"queue_id":"sales","retention_days":7}]}`,
		nil)
	tag := w.Header().Get("ETag")
	got = policyView{}
	e.want(200, "GET", callRecordingPath, below, "", &got)

	if got.Config["mode"] != "all" || got.InheritedFrom != "demo" {
		t.Errorf("below: %+v", got)
	}

	text, err := json.Marshal(got.Config)
	must(t, err)
	e.want(200, "PUT", callRecordingPath, withHeader(admin, "If-Match", tag), string(text), nil) // GET, edit, PUT
	e.want(412, "PUT", callRecordingPath, withHeader(admin, "If-Match", `"another"`), `{"mode":"off"}`, nil)
	e.want(304, "GET", callRecordingPath, withHeader(admin, "If-None-Match", tag), "", nil)
	e.want(200, "PUT", callRecordingPath, below, `{"mode":"off"}`, nil)
	got = policyView{}
	e.want(200, "GET", callRecordingPath, below, "", &got)

	if got.Config["mode"] != "off" || got.InheritedFrom != "" {
		t.Errorf("below, with its own: %+v", got)
	}

	for body, want := range map[string]string{
		`{}`: "mode", `{"mode":"sometimes"}`: "mode", `{"mode":"all","queues":[""]}`: "queues[0]",
		`{"mode":"all","retention_days":-1}`: "retention_days",
		`{"mode":"all","announce":"yes"}`:    "announce", `{"mode":"all","extra":1}`: "extra",
		`{"mode":"all","queue_retention":[{"queue_id":"a","retention_days":99999}]}`: "queue_retention[0].retention_days",
	} {
		if w := e.want(400, "PUT", callRecordingPath, admin, body, nil); !strings.Contains(w.Body.String(),
			`"field":"`+want+`"`) {
			t.Errorf("%s: %s", body, w.Body)
		}
	}
}

// The announcement of recordings is a recording of the account, which nothing deletes from then on.
func TestARecordingAnnouncesRecordings(t *testing.T) {
	e := newEnv(t)
	admin, key := e.of("admin", "demo"), e.recorder()
	wav := "RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x07\x00\x01\x00\x40\x1f\x00\x00\x40\x1f\x00\x00\x01\x00\x08\x00data\x00\x00\x00\x00"
	e.want(201, "PUT", recordingsPath+"/greeting", withHeader(key, "Content-Type", "audio/wav"),
		wav+strings.Repeat("\x2b", 8000), nil)
	e.want(201, "PUT", recordingsPath+"/long", key, wav+strings.Repeat("\x2b", 8000*31), nil)
	e.want(201, "PUT", recordingsPath+"/text", key, "not audio", nil)

	for _, id := range []string{"none", "long", "text"} {
		w := e.want(400, "PUT", callRecordingPath, admin, `{"mode":"all","announce":true,"announcement":"`+id+`"}`, nil)
		if !strings.Contains(w.Body.String(), `"field":"announcement"`) {
			t.Errorf("%s: %s", id, w.Body)
		}
	}

	e.want(400, "PUT", callRecordingPath, admin, `{"mode":"all","announcement":"greeting"}`, nil)
	e.want(200, "PUT", callRecordingPath, admin, `{"mode":"all","announce":true,"announcement":"greeting"}`, nil)
	e.want(409, "DELETE", recordingsPath+"/greeting", key, "", nil)
	w := e.want(200, "GET", callRecordingPath, admin, "", nil)
	if !strings.Contains(w.Body.String(), `"announcement":"greeting"`) {
		t.Errorf("%s", w.Body)
	}
}
