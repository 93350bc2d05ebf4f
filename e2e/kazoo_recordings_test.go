package e2e

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// recordCalls turns on the recording of all calls, sealed.
func (r *recorder) recordCalls(t *testing.T) {
	t.Helper()
	r.configure(t, `{"enabled":true}`)
	r.curl(t, "-H", "Authorization: Bearer "+r.token, "-H", "X-Account-ID: demo", "-X", "PUT", "-H",
		"Content-Type: application/json",
		"-d", `{"mode":"all","announce":true}`, r.url+"/api/v2/config/call_recording")
}

// controlRecording starts, stops, pauses or resumes the recording of a call.
func (r *recorder) controlRecording(t *testing.T, id, action string) {
	t.Helper()

	args := []string{"-sS", "--fail-with-body", "--cacert", filepath.Join(r.dir, "tls", "cert.pem"), "-H",
		"Authorization: Bearer " + r.token,
		"-H", "X-Account-ID: demo", "-H", "Content-Type: application/json", "-d", fmt.Sprintf(`{"action":%q}`, action),
		r.url + "/api/v2/calls/" + id + "/recording"}
	eventually(t, action+" of the recording, which begins with the audio", func() error {
		out, err := exec.Command(r.curlPath, args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

// mustHaveRecorded checks the recording of a call between two phones that was paused once: found by
// the call, sealed, each phone's tone on its channel, and no tone in the data directory.
func (r *recorder) mustHaveRecorded(t *testing.T, id string, caller, callee *phone) {
	t.Helper()
	var found struct {
		Data []struct {
			RecordingID string `json:"recording_id"`
			CallID      string `json:"call_id"`
			Encrypted   bool   `json:"encrypted"`
			Channels    int    `json:"channels"`
			DurationMS  int64  `json:"duration_ms"`
			Pauses      []struct {
				Start int64 `json:"start_ms"`
				End   int64 `json:"end_ms"`
			} `json:"pauses"`
		} `json:"data"`
	}

	eventually(t, "the recording to be stored", func() error {
		r.decode(t, r.curl(t, "-H", "X-API-Key: "+r.key, r.url+"/api/v2/recordings?origination_call_id="+id), &found)
		if len(found.Data) != 1 {
			return fmt.Errorf("%d recordings", len(found.Data))
		}
		return nil
	})

	m := found.Data[0]
	if !m.Encrypted || m.Channels != 2 || m.DurationMS < 3000 || len(m.Pauses) != 1 ||
		m.Pauses[0].End-m.Pauses[0].Start < 900 {
		t.Fatalf("%+v", m)
	}

	file := filepath.Join(t.TempDir(), "call.wav")
	r.curl(t, "-H", "X-API-Key: "+r.key, "-o", file, r.recordingURL(m.RecordingID))
	for channel, p := range []*phone{caller, callee} {
		before := strconv.FormatFloat(float64(m.Pauses[0].Start)/1000-0.8, 'f', 3, 64)
		if hertz := roughFrequency(t, file, channel, before, "0.6"); hertz < p.hertz*9/10 || hertz > p.hertz*11/10 {
			t.Errorf("channel %d has %d Hz, want %d", channel, hertz, p.hertz)
		}

		pause := strconv.FormatFloat(float64(m.Pauses[0].Start)/1000+0.1, 'f', 3, 64)
		if level := soxStat(t, file, channel, pause, "0.6", "Maximum amplitude:"); level != "0.000000" {
			t.Errorf("channel %d has %s in the pause", channel, level)
		}
	}

	for _, p := range []*phone{caller, callee} {
		r.mustHideTone(t, p)
	}
}

// soxStat returns a line of sox's statistics of a part of a channel.
func soxStat(t *testing.T, file string, channel int, from, length, line string) string {
	t.Helper()
	out, err := exec.Command("sox", file, "-n", "remix", strconv.Itoa(channel+1), "trim", from, length,
		"stat").CombinedOutput()
	if err != nil {
		t.Fatalf("sox: %v: %s", err, out)
	}

	for text := range strings.Lines(string(out)) {
		if value, ok := strings.CutPrefix(text, line); ok {
			return strings.TrimSpace(value)
		}
	}

	t.Fatalf("sox prints %s", out)
	return ""
}

func roughFrequency(t *testing.T, file string, channel int, from, length string) int {
	t.Helper()
	hertz, err := strconv.Atoi(soxStat(t, file, channel, from, length, "Rough   frequency:"))
	if err != nil {
		t.Fatal(err)
	}
	return hertz
}

// mustHideTone checks that no file of the data directory has the samples of a phone's tone, as
// 16 bits or as µ-law.
func (r *recorder) mustHideTone(t *testing.T, p *phone) {
	t.Helper()
	tone := filepath.Join(p.folder, "tone.wav")

	pieces := [][]byte{
		printed(t, "sox", tone, "-t", "raw", "-e", "u-law", "-b", "8", "-", "trim", "1", "0.005"),
		printed(t, "sox", tone, "-t", "raw", "-e", "signed", "-b", "16", "-", "trim", "1", "0.005"),
	}
	err := filepath.WalkDir(r.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}

		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}

		for _, piece := range pieces {
			if bytes.Contains(content, piece) {
				t.Errorf("%s has the tone of %d Hz", path, p.hertz)
			}
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Kazoo puts what it recorded straight in: the requests of both of its shapes, as its HTTP client sends
// them, find their calls, whichever of recording and record comes first.
func TestKazooPutsItsRecordingsIn(t *testing.T) {
	t.Parallel()
	n := newNode(t, "kazoo", map[string]string{"TRUNKLINE_DEMO_PASSWORD": password})
	n.start(t)
	r := newRecorder(t, n)
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
