package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/recording"
)

// onEachHTTPVersion runs test over HTTP/1.1 and HTTP/2, against a server with a short
// ReadTimeout and the StallTimeout stall.
func onEachHTTPVersion(t *testing.T, stall time.Duration, test func(t *testing.T, e *env, server *httptest.Server)) {
	for _, version := range []string{"HTTP/1.1", "HTTP/2"} {
		t.Run(version, func(t *testing.T) {
			e := newEnv(t, func(c *Config, _ *Deps) { c.StallTimeout = stall })
			server := httptest.NewUnstartedServer(e.api)
			server.Config.ReadTimeout = time.Second
			server.EnableHTTP2 = version == "HTTP/2"
			server.StartTLS()
			t.Cleanup(server.Close)
			test(t, e, server)
		})
	}
}

func (e *env) send(server *httptest.Server, method, path string, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequestWithContext(e.t.Context(), method, server.URL+path, body)
	must(e.t, err)
	r.Header.Set("X-API-Key", e.key)
	return server.Client().Do(r)
}

// slowReader returns the text "drop" n times, each after a pause.
type slowReader struct {
	n     int
	pause time.Duration
}

func (r *slowReader) Read(p []byte) (int, error) {
	if r.n == 0 {
		return 0, io.EOF
	}
	time.Sleep(r.pause) // the test shows the duration of a slow client
	r.n--
	return copy(p, "drop"), nil
}

func TestARecordingMayTakeItsTime(t *testing.T) {
	if testing.Short() {
		t.Skip("sends a body slowly")
	}

	onEachHTTPVersion(t, time.Minute, func(t *testing.T, e *env, server *httptest.Server) {
		answer, err := e.send(server, "PUT", recordingsPath+"/slow", &slowReader{12, 150 * time.Millisecond})
		must(t, err)
		var stored recording.Metadata
		must(t, json.NewDecoder(answer.Body).Decode(&stored))
		must(t, answer.Body.Close())

		if answer.StatusCode != 201 || stored.Size != 48 {
			t.Errorf("%d, %+v", answer.StatusCode, stored)
		}

		audio := testAudio(24 << 20)
		answer, err = e.send(server, "PUT", recordingsPath+"/long", strings.NewReader(audio))
		must(t, err)
		must(t, answer.Body.Close())
		answer, err = e.send(server, "GET", recordingsPath+"/long", nil)
		must(t, err)
		digest, part := sha256.New(), make([]byte, 3<<20)

		for {
			time.Sleep(200 * time.Millisecond) // a listener slower than ReadTimeout
			n, err := io.ReadFull(answer.Body, part)
			digest.Write(part[:n])
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				break
			}

			must(t, err)
		}

		must(t, answer.Body.Close())
		want := sha256.Sum256([]byte(audio))
		if got := hex.EncodeToString(digest.Sum(nil)); got != hex.EncodeToString(want[:]) {
			t.Errorf("another recording came back")
		}

		// The connection is as good as new.
		time.Sleep(1200 * time.Millisecond)
		answer, err = e.send(server, "GET", recordingsPath+"/slow", nil)
		must(t, err)
		whole, err := io.ReadAll(answer.Body)
		must(t, err)
		must(t, answer.Body.Close())

		if !bytes.Equal(whole, bytes.Repeat([]byte("drop"), 12)) {
			t.Errorf("%q", whole)
		}
	})
}

// stallingReader returns first and then blocks until it is closed.
type stallingReader struct {
	first string
	done  chan struct{}
	once  sync.Once
}

func (s *stallingReader) Read(p []byte) (int, error) {
	if n := copy(p, s.first); n > 0 {
		s.first = s.first[n:]
		return n, nil
	}
	<-s.done
	return 0, io.EOF
}

func (s *stallingReader) Close() error {
	s.once.Do(func() { close(s.done) })
	return nil
}

func TestAClientThatStopsIsGivenUp(t *testing.T) {
	onEachHTTPVersion(t, 400*time.Millisecond, func(t *testing.T, e *env, server *httptest.Server) {
		body := &stallingReader{first: "some", done: make(chan struct{})}
		ended := make(chan int, 1)
		go func() {
			status := 0 // the connection went before the answer
			if answer, err := e.send(server, "PUT", recordingsPath+"/stopped", body); err == nil {
				status = answer.StatusCode
				_ = answer.Body.Close()
			}
			ended <- status
		}()

		select {
		case status := <-ended:
			if status != 0 && status != 400 && status != statusClientClosed {
				t.Errorf("answered %d", status)
			}
		case <-time.After(patience):
			t.Error("it waits still")
		}

		e.ask(404, "GET", recordingsPath+"/stopped", e.recorderHeader(), "", nil)
	})
}
