package aisession_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"trunkline/aisession"
	"trunkline/config/aiprovider"
	"trunkline/internal/aiprotocol"
)

// skipOrFail skips where a program is missing, but not in CI.
func skipOrFail(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(what)
	}
	t.Skip("SKIPPED: " + what)
}

// foreignProvider is a provider of another language, running.
type foreignProvider struct {
	out   *os.File
	url   string
	lines *bufio.Reader
}

type foreignReport struct {
	Events, Faults []string
	Media, Close   int
}

func startPython(t *testing.T) *foreignProvider {
	t.Helper()
	return startForeignProvider(t, "python3", "testdata/provider.py")
}

func startForeignProvider(t *testing.T, interpreter, script string) *foreignProvider {
	t.Helper()
	program, err := exec.LookPath(interpreter)
	if err != nil {
		skipOrFail(t, interpreter+" is not installed")
	}

	cmd := exec.Command(program, script)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}

	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})

	p := &foreignProvider{out: out.(*os.File), lines: bufio.NewReader(out)}
	line, err := p.lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}

	p.url = strings.TrimSpace(line)
	return p
}

func (p *foreignProvider) report(t *testing.T) (r foreignReport) {
	t.Helper()
	_ = p.out.SetReadDeadline(time.Now().Add(patience)) // pipes have deadlines on Linux
	line, err := p.lines.ReadString('\n')
	if err != nil || json.Unmarshal([]byte(line), &r) != nil {
		t.Fatalf("no report: %q, %v", line, err)
	}

	if len(r.Faults) > 0 || r.Close != 1000 {
		t.Errorf("the provider objects: %+v", r)
	}

	return r
}

func (p *foreignProvider) config(encoding string) aiprovider.Provider {
	format, _ := aiprotocol.FormatOf(encoding)
	return aiprovider.Provider{ID: "prov1", AccountID: "demo", Format: format, URL: p.url,
		Fallback: aiprovider.FallbackHangup}
}

func TestAProviderInPython(t *testing.T) {
	t.Parallel()
	talkTo(t, startPython(t))
}

func TestAProviderInNode(t *testing.T) {
	t.Parallel()
	talkTo(t, startForeignProvider(t, "node", "testdata/provider.js"))
}

// talkTo has a session of each format with a provider.
func talkTo(t *testing.T, p *foreignProvider) {
	h := startService(t, aisession.DefaultSettings(), nil)
	for _, encoding := range []string{"g711_ulaw", "pcm16", "opus"} {
		run := h.start(request(p.config(encoding), ulaw))
		hearsTone(t, ulaw, 4, func() [][]byte { return packetsOf(run.phone.playedAudio()) })
		run.ReceiveDTMF('#', 100*time.Millisecond)
		pressed := run.phone.frames()
		until(t, "a little more", func() bool { return run.phone.frames() > pressed+20 })
		run.end(t, "NO_ANSWER")
		r := p.report(t)
		if want := []string{"start", "media", "dtmf", "media", "hangup"}; !reflect.DeepEqual(r.Events, want) ||
			r.Media < 20 {
			t.Errorf("%s: %+v", encoding, r)
		}
	}
}
