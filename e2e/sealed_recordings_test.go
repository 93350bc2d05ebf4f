package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// storedFile returns the file of a recording in the store.
func (r *recordingUser) storedFile(t *testing.T, id string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(r.dir, "recordings", "demo", id+".*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the store holds %v of %s (%v)", files, id, err)
	}
	return files[0]
}

// recordWithSox records half a minute of a call with sox.
func recordWithSox(t *testing.T) (file string, audio []byte) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "call.wav")
	outputOf(t, tool(t, "sox"), "-n", "-r", "8000", "-c", "1", "-b", "16", file,
		"synth", "30", "pluck", "C3", "synth", "30", "sine", "fmod", "300-700")
	audio, err := os.ReadFile(file)
	if err != nil || len(audio) < 400_000 {
		t.Fatalf("sox recorded %d bytes, %v", len(audio), err)
	}
	return file, audio
}

// mustHideAudio checks that a sealed file contains none of the audio.
func mustHideAudio(t *testing.T, file, audioFile string) {
	t.Helper()
	stringsPath := tool(t, "strings")
	told := map[string]bool{}

	for line := range strings.Lines(string(outputOf(t, stringsPath, "-n", "8", audioFile))) {
		told[line] = true
	}

	if len(told) == 0 || !bytes.Contains(outputOf(t, stringsPath, "-n", "4", audioFile), []byte("WAVEfmt")) {
		t.Error("strings finds nothing in the audio itself: this shows nothing")
	}

	for line := range strings.Lines(string(outputOf(t, stringsPath, "-n", "8", file))) {
		if told[line] || strings.Contains(line, "WAVEfmt") {
			t.Errorf("strings finds %q in %s", line, file)
		}
	}
}

func TestRecordings(t *testing.T) {
	t.Parallel()
	n := newNode(t, "recordings", map[string]string{"TRUNKLINE_DEMO_PASSWORD": password})
	n.start(t)
	r := newRecordingUser(t, n)
	file, audio := recordWithSox(t)
	listener := n.subscribe(t,
		subscription{paths: apiPaths, token: n.login(t, apiPaths, user("alice").types("AGENT_CUSTOM_EVENT"))})

	first := r.configure(t, `{"enabled":true}`)
	r.curl(t, "-T", file, "-H", "X-API-Key: "+r.key, "-H", "Content-Type: audio/x-wav", r.recordingURL("call-1"))
	sealed := r.storedFile(t, "call-1")
	mustHideAudio(t, sealed, file)
	r.mustAnnounceStored(t, listener, first)

	r.configure(t, `{"enabled":true,"key":"the second key, which nobody will guess"}`)
	second := r.configure(t, `{"enabled":true,"salt":"the third salt","algorithm":"AES-256-CBC"}`)
	r.configure(t, `{"enabled":false}`)
	r.curl(t, "-T", file, "-H", "X-API-Key: "+r.key, r.recordingURL("plain"))
	r.mustPlay(t, "call-1", audio)
	r.mustPlay(t, "plain", audio)

	if m := r.metadata(t, "call-1"); m.KeyVersion != 1 || !m.Encrypted || m.Type != "audio/x-wav" ||
		m.Size != int64(len(audio)) || m.StoredSize <= m.Size {
		t.Errorf("%+v", m)
	}
	if m := r.metadata(t, "plain"); m.Encrypted || m.KeyVersion != 0 || m.StoredSize != m.Size {
		t.Errorf("%+v", m)
	}

	r.mustOpenOffline(t, sealed, audio, first.Config.Key, first.Config.Salt)
	r.mustReseal(t, audio, second)
	r.mustRotateMasterKey(t)
	r.mustPlay(t, "call-1", audio)
}

// mustAnnounceStored waits for the event on the channel, which must contain no secret.
func (r *recordingUser) mustAnnounceStored(t *testing.T, listener *subscriber, config encryptionConfig) {
	t.Helper()
	got := listener.awaitCount(t, 1)[0]
	var data struct {
		Event       string `json:"event"`
		RecordingID string `json:"recording_id"`
		Encrypted   bool   `json:"encrypted"`
	}
	r.decode(t, got.Data, &data)

	if got.Type != "AGENT_CUSTOM_EVENT" || got.AccountID != "demo" || data.Event != "recording.stored" ||
		data.RecordingID != "call-1" || !data.Encrypted {
		t.Errorf("the channel sent %+v with %s", got, got.Data)
	}
	if text := string(got.Data); strings.Contains(text, config.Config.Key) ||
		strings.Contains(text, config.Config.Salt) {
		t.Errorf("the event tells the key: %s", text)
	}
}

// mustPlay plays a recording whole and in parts; sox must accept the audio.
func (r *recordingUser) mustPlay(t *testing.T, id string, audio []byte) {
	t.Helper()
	if whole := r.play(t, id); !bytes.Equal(whole, audio) {
		t.Errorf("%s: %d bytes returned, want %d", id, len(whole), len(audio))
	}

	for _, part := range []struct{ from, to int }{{0, 43}, {65_500, 65_600}, {300_000, len(audio) - 1}} {
		if got := r.play(t, id, "-r", fmt.Sprintf("%d-%d", part.from, part.to)); !bytes.Equal(got,
			audio[part.from:part.to+1]) {
			t.Errorf("%s, bytes %d to %d: %d other bytes returned", id, part.from, part.to, len(got))
		}
	}

	heard := filepath.Join(t.TempDir(), "heard.wav")
	r.play(t, id, "-o", heard)
	if length := strings.TrimSpace(string(outputOf(t, tool(t, "sox"), "--info", "-D", heard))); length != "30.000000" {
		t.Errorf("%s plays for %s seconds", id, length)
	}
}

// mustOpenOffline opens a file of the store with only key and salt: with the command, and with a
// reader written from the documentation alone.
func (r *recordingUser) mustOpenOffline(t *testing.T, file string, audio []byte, key, salt string) {
	t.Helper()
	opened := filepath.Join(t.TempDir(), "opened.wav")
	away := map[string]string{"TRUNKLINE_DATA_DIR": filepath.Join(t.TempDir(), "none")}
	done := run(t, away, "", "recording", "open", file, "--key", key, "--salt", salt, "--output", opened)
	if got := readFile(t, opened); done.code != 0 || got != string(audio) {
		t.Errorf("recording open ends with %d %s, %d bytes", done.code, done.stderr, len(got))
	}
	if wrong := run(t, away, "", "recording", "open", file, "--key", "not "+key, "--salt", salt); wrong.code != 1 ||
		wrong.stdout != "" {
		t.Errorf("with a wrong key it ends with %d", wrong.code)
	}

	python := tool(t, "python3")
	if out, err := exec.Command(python, "-c", "import cryptography").CombinedOutput(); err != nil {
		skipMissingTool(t, fmt.Sprintf("python3 has no package cryptography: %s", out))
	}

	outputOf(t, python, "../recording/reader/trunkrec.py", "open", file, opened, "--key", key, "--salt", salt)
	if readFile(t, opened) != string(audio) {
		t.Error("the second reader opens another audio")
	}
}

// mustReseal moves the recordings to the newest key while the server runs.
func (r *recordingUser) mustReseal(t *testing.T, audio []byte, newest encryptionConfig) {
	t.Helper()
	if out := r.cli(t, "recording", "reseal"); !strings.HasPrefix(out, "1 recordings") {
		t.Errorf("recording reseal prints %q", out)
	}
	if m := r.metadata(t, "call-1"); m.KeyVersion != newest.Config.KeyVersion {
		t.Errorf("after resealing: %+v", m)
	}
	r.mustOpenOffline(t, r.storedFile(t, "call-1"), audio, newest.Config.Key, newest.Config.Salt)
}

// mustRotateMasterKey rotates the master key while the server runs; afterwards the old key opens
// nothing.
func (r *recordingUser) mustRotateMasterKey(t *testing.T) {
	t.Helper()
	before, file := r.configure(t, ""), filepath.Join(r.dir, "master.key")
	old := readFile(t, file)
	r.cli(t, "masterkey", "rotate")

	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 || readFile(t, file) == old {
		t.Errorf("the key file: %v, %v", info, err)
	}

	after := r.configure(t, "")
	if len(before.Config.OldKeys) != 2 || fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("was %d versions, is %d", before.Config.KeyVersion, after.Config.KeyVersion)
	}
	if log := readFile(t, r.log); strings.Contains(log, before.Config.Key) ||
		strings.Contains(log, before.Config.OldKeys["1"]) {
		t.Error("the log tells a key")
	}
}

// A server that is killed during an upload leaves no recording and no plaintext, and starts
// again; it does not start without its master key.
func TestRecordingsSurviveCrashes(t *testing.T) {
	t.Parallel()
	n := newNode(t, "crashing recordings", map[string]string{"TRUNKLINE_DEMO_PASSWORD": password})
	n.start(t)
	r := newRecordingUser(t, n)
	file, audio := recordWithSox(t)
	r.configure(t, `{"enabled":true}`)
	r.curl(t, "-T", file, "-H", "X-API-Key: "+r.key, r.recordingURL("whole"))

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	slow := exec.CommandContext(ctx, r.curlPath, "-sS", "--cacert", filepath.Join(r.dir, "tls", "cert.pem"),
		"--limit-rate", "100k",
		"-T", file, "-H", "X-API-Key: "+r.key, r.recordingURL("half"))
	if err := slow.Start(); err != nil {
		t.Fatal(err)
	}

	unfinished := func() (file string, size int64) {
		found, err := filepath.Glob(filepath.Join(r.dir, "recordings", ".unfinished", "*"))
		if err != nil || len(found) == 0 {
			return "", 0
		}

		info, err := os.Stat(found[0])
		if err != nil {
			return "", 0
		}

		return found[0], info.Size()
	}

	eventually(t, "the upload to be half-way", func() error {
		if _, size := unfinished(); size < 70_000 {
			return fmt.Errorf("%d bytes are written", size)
		}
		return nil
	})

	n.kill(t)
	if err := slow.Wait(); err == nil {
		t.Error("curl reports success of the interrupted upload")
	}

	left, _ := unfinished()
	mustHideAudio(t, left, file)
	n.start(t)

	if a := n.mustCall(t, http.MethodGet, "/api/v2/recordings/half", map[string]string{"X-API-Key": r.key},
		""); a.status != http.StatusNotFound {
		t.Errorf("the half recording: %s", a)
	}

	r.mustPlay(t, "whole", audio)
	r.curl(t, "-T", file, "-H", "X-API-Key: "+r.key, r.recordingURL("half"))
	r.mustPlay(t, "half", audio)

	n.kill(t)
	key := filepath.Join(r.dir, "master.key")
	if err := os.Rename(key, key+".away"); err != nil {
		t.Fatal(err)
	}

	n.startProcess(t)
	if code, ok := n.awaitExit(patience); !ok || code != 2 {
		t.Errorf("without its master key it ends with %d (%v)", code, ok)
	}
	if lines := strings.Split(strings.TrimSpace(readFile(t, n.log)), "\n"); !strings.Contains(lines[len(lines)-1],
		"set TRUNKLINE_MASTER_KEY or bring back its key file") {
		t.Errorf("stderr %q", lines[len(lines)-1])
	}
	if _, err := os.Stat(key); err == nil {
		t.Error("it made another key")
	}
	if err := os.Rename(key+".away", key); err != nil {
		t.Fatal(err)
	}

	n.start(t)
	r.mustPlay(t, "whole", audio)
}
