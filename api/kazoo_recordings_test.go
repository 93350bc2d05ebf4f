package api

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"trunkline/recording"
)

// Kazoo's HTTP PUT storage sends what it recorded under a name of its own, with a key as the
// password of the URL; some versions add what they know of the call, empty where it is nothing.
func TestKazoosStorageGoesStraightIn(t *testing.T) {
	e := newEnv(t)
	const name = recordingsPath + "/call_recording_OTc5%7E4.a%40192.0.2.7.mp3"
	for query, interaction := range map[string]string{
		"": "",
		"?from=1001%40pbx.example.com&to=%2B4930123456%40pbx.example.com&caller_id_name=&caller_id_number=1001" +
			"&call_id=OTc5%7E4.a%40192.0.2.7&cdr_id=202611-OTc5%7E4.a%40192.0.2.7&interaction_id=63961380000-0a1b2c3d": "63961380000-0a1b2c3d",
		"?from=&to=&caller_id_name=&caller_id_number=&call_id=&cdr_id=&interaction_id=": "",
	} {
		r := httptest.NewRequest("PUT", name+query, strings.NewReader("ID3 audio"))
		r.SetBasicAuth("kazoo", e.key)
		r.Header.Set("Content-Type", "audio/mpeg")
		r.Header.Set("Content_type", "audio/mpeg")
		w := httptest.NewRecorder()
		e.api.ServeHTTP(w, r)
		var stored recording.Metadata
		must(t, json.Unmarshal(w.Body.Bytes(), &stored))

		if w.Code != 201 || stored.RecordingID != "call_recording_OTc5_4.a_192.0.2.7.mp3" ||
			stored.CallID != "OTc5~4.a@192.0.2.7" ||
			stored.InteractionID != interaction || stored.ContentType != "audio/mpeg" {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}

		e.ask(200, "GET", recordingsPath+"/"+stored.RecordingID, e.recorderHeader(), "", nil)
		e.ask(204, "DELETE", recordingsPath+"/"+stored.RecordingID, e.recorderHeader(), "", nil)
	}

	e.ask(400, "PUT", recordingsPath+"/call_recording_a%2Fb.mp3", e.recorderHeader(), "audio", nil)
	e.ask(400, "PUT", recordingsPath+"/call-1?interaction_id=", e.recorderHeader(), "audio", nil)
}
