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
)

// recordCalls turns on the recording of all calls, sealed.
func (r *recordingUser) recordCalls(t *testing.T) {
	t.Helper()
	r.configure(t, `{"enabled":true}`)
	r.curl(t, "-H", "Authorization: Bearer "+r.token, "-H", "X-Account-ID: demo", "-X", "PUT", "-H",
		"Content-Type: application/json",
		"-d", `{"mode":"all","announce":true}`, r.url+"/api/v2/config/call_recording")
}

// controlRecording starts, stops, pauses or resumes the recording of a call.
func (r *recordingUser) controlRecording(t *testing.T, id, action string) {
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
func (r *recordingUser) mustHaveRecorded(t *testing.T, id string, caller, callee *phone) {
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
func (r *recordingUser) mustHideTone(t *testing.T, p *phone) {
	t.Helper()
	tone := filepath.Join(p.folder, "tone.wav")

	pieces := [][]byte{
		outputOf(t, "sox", tone, "-t", "raw", "-e", "u-law", "-b", "8", "-", "trim", "1", "0.005"),
		outputOf(t, "sox", tone, "-t", "raw", "-e", "signed", "-b", "16", "-", "trim", "1", "0.005"),
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
