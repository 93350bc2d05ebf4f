package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Kazoo puts what it recorded straight in: the requests of both of its shapes, as its HTTP client sends
// them, find their calls, whichever of recording and record comes first.
func TestKazooPutsItsRecordingsIn(t *testing.T) {
	t.Parallel()
	n := newNode(t, "kazoo", map[string]string{"TRUNKLINE_DEMO_PASSWORD": password})
	n.start(t)
	r := newRecordingUser(t, n)
	r.configure(t, `{"enabled":true}`)
	audio := append([]byte("ID3\x04"), bytes.Repeat([]byte{0xFF, 0xFB, 0x90, 0x64}, 20_000)...)
	file := filepath.Join(t.TempDir(), "recording.mp3")
	if err := os.WriteFile(file, audio, 0o600); err != nil {
		t.Fatal(err)
	}

	for i, query := range []string{
		"",
		"?from=1001%%40demo.local&to=1002%%40demo.local&caller_id_name=Alice%%20A&caller_id_number=1001&call_id=%[1]s&cdr_id=202611-%[1]s&interaction_id=",
	} {
		call, escaped := fmt.Sprintf("OTc5~%d.a@192.0.2.7", i), fmt.Sprintf("OTc5%%7E%d.a%%40192.0.2.7", i)
		if query != "" {
			query = fmt.Sprintf(query, escaped)
		}

		record := fmt.Sprintf(
			`{"Event-Category":"call_event","Event-Name":"CHANNEL_DESTROY","Call-ID":%q,"Call-Direction":"inbound","Timestamp":%d,`+
				`"From":"1001@demo.local","To":"1002@demo.local","Caller-ID-Number":"1001","Callee-ID-Number":"1002","Hangup-Cause":"NORMAL_CLEARING",`+
				`"Billing-Seconds":7,"Duration-Seconds":9,"Custom-Channel-Vars":{"Account-ID":"demo","Call-Interaction-ID":"63961380000-%d","Media-Recording-ID":"202611-0a1b2c3d"}}`,
			call, time.Now().Unix()+62_167_219_200, i)
		post := func() { n.postAccepted(t, r.key, "kazoo.cdr", typeJSON, record, 1) }

		if i == 0 {
			post()
		}

		r.curl(t, "-X", "PUT", "-u", "trunkline:"+r.key, "-H", "Content-Type: audio/mpeg", "-H",
			"Content_type: audio/mpeg", "-H", "TE:",
			"--data-binary", "@"+file, r.recordingURL("call_recording_"+escaped+".mp3"+query))

		if i == 1 {
			post()
		}

		id := fmt.Sprintf("call_recording_OTc5_%d.a_192.0.2.7.mp3", i)
		var m struct {
			CallID        string `json:"call_id"`
			InteractionID string `json:"interaction_id"`
			Direction     string `json:"direction"`
			Encrypted     bool   `json:"encrypted"`
		}

		eventually(t, "the recording to know its call", func() error {
			r.decode(t, r.play(t, id+"/metadata"), &m)
			if m.InteractionID == "" {
				return fmt.Errorf("%+v", m)
			}
			return nil
		})

		if m.CallID != call || m.InteractionID != fmt.Sprintf("63961380000-%d", i) || m.Direction != "inbound" ||
			!m.Encrypted {
			t.Errorf("%+v", m)
		}
		if !bytes.Equal(r.play(t, id), audio) {
			t.Error("the audio is another")
		}

		var row callRecord
		d := n.dialler(t, "alice")
		eventually(t, "the call's record to name its recording", func() error {
			var page struct {
				Data []callRecord `json:"data"`
			}
			if err := d.report(t, "interaction_id="+m.InteractionID, &page); err != nil || len(page.Data) != 1 {
				return fmt.Errorf("%d legs, %w", len(page.Data), err)
			}

			row = page.Data[0]
			if row.RecordingID != id {
				return fmt.Errorf("%+v", row)
			}

			return nil
		})
	}
}
