package recording

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/internal/freeport"
	"trunkline/internal/retry"
	"trunkline/recording"
	"trunkline/settings"
)

// TestSenderProcess is the sender as a process of its own, which a test can kill.
func TestSenderProcess(t *testing.T) {
	args := os.Getenv("TEST_SENDER_ARGS")
	if args == "" {
		t.Skip("a process of TestNothingIsLostWhileServerAndSenderFail")
	}

	go func() { // its parent, which holds the other end, has died
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()

	p := &cli.Program{In: strings.NewReader(""), Out: os.Stdout, Err: os.Stderr, Env: os.Environ()}
	ctx := cli.SignalContext()
	root := p.Root("trunkline", "", []*cobra.Command{Command(p)}...)
	os.Exit(p.Run(ctx, root, strings.Split(args, "\n")))
}

// startSender starts a sender as a process.
func startSender(t *testing.T, key string, args ...string) *exec.Cmd {
	t.Helper()
	command := exec.Command(os.Args[0], "-test.run=^TestSenderProcess$")
	command.Env = append(os.Environ(),
		"TEST_SENDER_ARGS="+strings.Join(append([]string{"recording", "send"}, args...), "\n"),
		cli.EnvAPIKey+"="+key, "TRUNKLINE_DATA_DIR="+t.TempDir())
	_, err := command.StdinPipe() // ends with this process
	check(t, err)
	check(t, command.Start())
	t.Cleanup(func() { _ = command.Process.Kill() }) // of a test that failed before it was waited for

	return command
}

// unreliable is a proxy in front of the server: some requests get 503, and of some the answer is
// lost after the server has stored the recording.
func unreliable(t *testing.T, address string, s *settings.Settings) *http.Server {
	t.Helper()
	target, err := url.Parse("https://" + s.Listen)
	check(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}

	var n atomic.Int64
	server := &http.Server{Addr: address, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch n.Add(1) % 4 {
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 3:
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		default:
			proxy.ServeHTTP(w, r)
		}
	})}

	go func() { _ = server.ListenAndServe() }()
	t.Cleanup(func() { _ = server.Close() })
	return server
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for began := time.Now(); !ok(); retry.Sleep(t.Context(), 50*time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("%s: it never came true", what)
		}
	}
}

func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.wav"))
	check(t, err)
	return files
}

// Trunkline is away for a while, then it fails every other time, and the sender is killed: no
// recording is missing and none is there twice.
func TestNothingIsLostWhileServerAndSenderFail(t *testing.T) {
	w := newRunner(t)
	dir := t.TempDir()
	address := freeport.Address(t)
	const n = 12

	want := map[string]string{}
	write := func(i int) {
		id, audio := fmt.Sprintf("0b6f3c1e-%04d", i), strings.Repeat(fmt.Sprint("audio ", i), 5000)
		want[id] = audio
		check(t, os.WriteFile(filepath.Join(dir, id+".wav"), []byte(audio), 0o600))
	}

	for i := range n / 2 {
		write(i)
	}

	s := w.Serve()
	account := strings.TrimSpace(w.MustRun("account", "create", "acme", "--domain", "acme.local"))
	key := strings.TrimSpace(w.MustRun("apikey", "create", "--account", account, "--scope", "recordings"))
	args := []string{"--watch", dir, "--url", "http://" + address, "--settle", "10ms"}
	first := startSender(t, key, args...) // nobody answers yet
	unreliable(t, address, s)
	await(t, "the first are sent", func() bool { return len(filesIn(t, dir)) < n/2-1 })
	check(t, first.Process.Kill())
	_ = first.Wait()

	for i := n / 2; i < n; i++ {
		write(i)
	}

	second := startSender(t, key, args...)
	await(t, "all are sent", func() bool { return len(filesIn(t, dir)) == 0 })
	check(t, second.Process.Signal(os.Interrupt))
	check(t, second.Wait())

	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	read := func(path string) []byte {
		request, err := http.NewRequest(http.MethodGet, "https://"+s.Listen+"/api/v2/recordings"+path, http.NoBody)
		check(t, err)
		request.Header.Set("X-API-Key", key)
		body, err := cli.Fetch(client, request, http.StatusOK)
		check(t, err)
		return body
	}

	var page recording.Page
	check(t, json.Unmarshal(read(""), &page))
	if len(page.Data) != n {
		t.Errorf("%d recordings, want %d", len(page.Data), n)
	}

	for _, m := range page.Data {
		if audio := want[m.RecordingID]; m.CallID != m.RecordingID || m.ContentType != "audio/wav" ||
			string(read("/"+m.RecordingID)) != audio {
			t.Errorf("%s is another one: %+v", m.RecordingID, m)
		}
	}
}

// fakeServer answers uploads with what answer returns.
func fakeServer(t *testing.T, answer func(r *http.Request, body string) (status int, digest string)) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body)
		status, digest := answer(r, body.String())
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(recording.Metadata{Digest: digest})
	}))

	t.Cleanup(server.Close)
	return server
}

func digestOf(text string) string {
	h := sha256.New()
	h.Write([]byte(text))
	return formatSum(h)
}

func TestWhatIsSentAndWhatStays(t *testing.T) {
	w := newRunner(t)
	w.Environ = append(w.Environ, cli.EnvAPIKey+"=tk_test")

	old := time.Now().Add(-time.Hour)
	put := func(dir, name, text string) string {
		path := filepath.Join(dir, name)
		check(t, os.MkdirAll(filepath.Dir(path), 0o700))
		check(t, os.WriteFile(path, []byte(text), 0o600))
		check(t, os.Chtimes(path, old, old))
		return path
	}

	var got []string
	server := fakeServer(t, func(r *http.Request, body string) (int, string) {
		if r.Method == http.MethodPut {
			got = append(got, strings.TrimPrefix(r.URL.Path, "/api/v2/recordings/")+"?"+r.URL.RawQuery)
		}

		switch {
		case strings.Contains(r.URL.Path, "there"):
			if r.Method == http.MethodGet {
				return 200, digestOf("the same")
			}
			return 409, ""
		case strings.Contains(r.URL.Path, "bad"):
			return 400, ""
		}

		return 201, digestOf(body)
	})

	dir := t.TempDir()
	put(dir, "20261126/queue-sales_3f2a@10.0.0.1.WAV", "audio")
	put(dir, "there-same.wav", "the same")
	other, bad := put(dir, "there-other.wav", "another"), put(dir, "bad.mp3", "audio")
	notes, hidden := put(dir, "notes.txt", "no audio"), put(dir, ".hidden.wav", "audio")
	code, out, errs := w.Run("recording", "send", dir, "--url", server.URL, "--name",
		`(?:queue-(?P<queue_id>[a-z]+)_)?(?P<id>(?P<call_id>[^/]+))\.[^.]+$`)
	if code != cli.ExitFailed || !strings.HasSuffix(out, "1 sent, 1 were there, 2 refused, 0 waiting\n") ||
		!strings.Contains(errs, "another recording there-other") {
		t.Errorf("exit code %d, %q, %q", code, out, errs)
	}
	if want := "3f2a_10.0.0.1?call_id=3f2a%4010.0.0.1&queue_id=sales"; !strings.Contains(strings.Join(got, "\n"),
		want) {
		t.Errorf("sent are %q", got)
	}

	for _, path := range []string{other, bad, notes, hidden} {
		_, err := os.Stat(path)
		check(t, err)
	}

	if left := filesIn(t, dir); len(left) != 2 || left[0] != hidden || left[1] != other {
		t.Errorf("left are %q", left)
	}

	w.MustFail(cli.ExitUsage, "--name needs a group", "recording", "send", dir, "--url", server.URL, "--name", "x")
	w.MustFail(cli.ExitUsage, "no field caller", "recording", "send", dir, "--url", server.URL, "--name",
		"(?P<id>x)(?P<caller>y)")
	w.MustFail(cli.ExitUsage, "give --watch DIR or PATH", "recording", "send")
	w.Environ = w.Environ[:len(w.Environ)-1]
	w.MustFail(cli.ExitUsage, "needs an API key", "recording", "send", dir)
}

// Who may write to the folder has nothing sent that lies outside of it, by a link that takes a
// file's or a folder's place behind the scan, and writes no control characters to the terminal.
func TestLinksOutOfTheFolderAreNotSent(t *testing.T) {
	w := newRunner(t)
	w.Environ = append(w.Environ, cli.EnvAPIKey+"=tk_test")

	var got []string
	server := fakeServer(t, func(r *http.Request, body string) (int, string) {
		if r.Method == http.MethodPut {
			got = append(got, body)
			return 400, ""
		}
		return 200, digestOf("secret")
	})

	dir, outside := t.TempDir(), t.TempDir()
	secret := filepath.Join(outside, "call.wav")
	check(t, os.WriteFile(secret, []byte("secret"), 0o600))
	check(t, os.Symlink(secret, filepath.Join(dir, "file.wav")))
	check(t, os.Symlink(outside, filepath.Join(dir, "folder")))
	s := &sender{url: server.URL, client: server.Client(), files: map[string]*pending{},
		pattern: regexp.MustCompile("(?P<id>[a-z]+).wav")}

	for _, path := range []string{filepath.Join(dir, "file.wav"), filepath.Join(dir, "folder", "call.wav")} {
		info, err := os.Stat(path)
		check(t, err)
		s.files[path] = &pending{size: info.Size(), modifiedAt: info.ModTime()} // as the scan noted it before
		err = s.send(t.Context(), dir, path)
		var refused *refusedError
		if !errors.As(err, &refused) || len(got) > 0 {
			t.Errorf("%s: %v, sent %q", path, err, got)
		}

		if err := s.compareStored(t.Context(), dir, path, "call", sha256.New()); err == nil {
			t.Errorf("%s was read", path)
		}
	}

	check(t, os.Remove(filepath.Join(dir, "file.wav")))
	hostile := filepath.Join(dir, "a\x1b]0;x\a.wav")
	check(t, os.WriteFile(hostile, []byte("audio"), 0o600))
	check(t, os.Chtimes(hostile, time.Now().Add(-time.Hour), time.Now().Add(-time.Hour)))
	_, _, errs := w.Run("recording", "send", dir, "--url", server.URL)
	if strings.ContainsAny(errs, "\x1b\a") || !strings.Contains(errs, "]0;x") {
		t.Errorf("printed %q", errs)
	}
	if len(got) != 1 || got[0] != "audio" {
		t.Errorf("sent %q", got)
	}
}

// A file that is still written, or that a process has open, is not sent.
func TestAFileIsSentWhenItIsComplete(t *testing.T) {
	s := &sender{files: map[string]*pending{}, settle: 5 * time.Second}
	dir := t.TempDir()
	path := filepath.Join(dir, "call.wav")
	file, err := os.Create(path)
	check(t, err)
	defer file.Close()

	info := func() os.FileInfo {
		i, err := os.Stat(path)
		check(t, err)
		return i
	}

	began := info().ModTime()
	for _, step := range []struct {
		after time.Duration
		grow  bool
		due   bool
	}{{0, false, false}, {4 * time.Second, false, false}, {6 * time.Second, true, false},
		{10 * time.Second, false, false}, {11 * time.Second, false, true}} {
		if step.grow {
			_, err := file.WriteString("more audio")
			check(t, err)
		}
		if due := s.isDue(path, info(), began.Add(step.after)); due != step.due {
			t.Errorf("after %v: %v", step.after, due)
		}
	}

	if _, err := os.Stat("/proc/self/fd"); err == nil && !openFiles([]string{path})[path] {
		t.Error("an open file is not known to be open")
	}

	check(t, file.Close())
	if openFiles([]string{path})[path] {
		t.Error("a closed file is open")
	}
}

// Asterisk writes the audio of a short call as it closes the file, whatever the sender does meanwhile.
func TestAFileThatIsClosedBehindTheScanIsNotSent(t *testing.T) {
	s := &sender{files: map[string]*pending{}, pattern: regexp.MustCompile("(?P<id>[a-z]+).wav")}
	dir := t.TempDir()
	for _, name := range []string{"closing.wav", "closed.wav"} {
		check(t, os.WriteFile(filepath.Join(dir, name), []byte("header"), 0o600))
	}

	due, err := s.scan(dir, time.Now().Add(time.Minute))
	check(t, err)
	if len(due) != 2 {
		t.Fatalf("due: %q", due)
	}

	check(t, os.WriteFile(filepath.Join(dir, "closing.wav"), []byte("header and audio"), 0o600))
	if got := s.closed(due); len(got) != 1 || filepath.Base(got[0]) != "closed.wav" {
		t.Errorf("sent are %q", got)
	}

	check(t, os.Remove(filepath.Join(dir, "closed.wav")))
	if got := s.closed(due); len(got) != 0 {
		t.Errorf("sent are %q", got)
	}
}
