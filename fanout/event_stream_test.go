package fanout

import (
	"bufio"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"

	"trunkline/event"
)

// A client can tell the end of a stream from a broken connection.
func TestAnEventStreamEndsWithItsLastChunk(t *testing.T) {
	for _, c := range []struct{ secure, http2 bool }{{false, false}, {true, false}, {true, true}} {
		directory := newDirectory()
		n := startNode(t, Config{}, newMemoryLog(1), directory, newPresence(), c.secure)
		token := directory.token("root", nil, nil)
		client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
			ForceAttemptHTTP2: c.http2}}
		response, err := client.Get(n.url + "/stream?token=" + token)
		if err != nil || response.StatusCode != 200 || (response.ProtoMajor == 2) != c.http2 {
			t.Fatalf("%v %v", response, err)
		}

		directory.edit(func() { directory.revoked[token] = true })
		body, err := io.ReadAll(response.Body)
		if err != nil || !strings.HasSuffix(string(body), ": 4003 access revoked\n\n") {
			t.Errorf("%+v: %v after %q", c, err, body)
		}

		_ = response.Body.Close()
		client.CloseIdleConnections()
	}
}

// A stream that asks for the past alone ends by itself, also where there is none.
func TestAStreamOfThePastEnds(t *testing.T) {
	directory := newDirectory()
	token := directory.token("root", nil, nil)
	read := func(n *node, query string) (status int, events int) {
		t.Helper()
		response, err := http.Get(n.url + "/stream?token=" + token + query)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()

		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Error(err)
		}

		return response.StatusCode, strings.Count(string(body), "\ndata: ")
	}

	empty := startNode(t, Config{}, newMemoryLog(2), directory, newPresence(), false)
	if status, events := read(empty, "&since=earliest&until=now"); status != 200 || events != 0 {
		t.Errorf("of nothing: %d, %d events", status, events)
	}

	log := newMemoryLog(2)
	log.put(0, "root", event.QueueCall, 0, 500)
	log.put(1, "root", event.QueueCall, 0, 1, 2)
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	if status, events := read(n, "&since=earliest&until=now"); status != 200 || events != 5 {
		t.Errorf("of the past: %d, %d events", status, events)
	}

	for _, query := range []string{"&until=now", "&until=later&since=earliest"} {
		if status, _ := read(n, query); status != 400 {
			t.Errorf("%s answers %d", query, status)
		}
	}
}

func TestEventStreamCarriesCursors(t *testing.T) {
	log, directory := newMemoryLog(2), newDirectory()

	n := startNode(t, Config{}, log, directory, newPresence(), false)
	token := directory.token("root", nil, nil)
	stream := func(lastEventID string) *bufio.Scanner {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, n.url+"/stream?token="+token, nil)
		if lastEventID != "" {
			request.Header.Set("Last-Event-ID", lastEventID)
		}

		response, err := http.DefaultClient.Do(request)
		if err != nil || response.StatusCode != 200 {
			t.Fatalf("%v %v", response, err)
		}

		t.Cleanup(func() { _ = response.Body.Close() })
		return bufio.NewScanner(response.Body)
	}

	field := func(s *bufio.Scanner, name string) string {
		for s.Scan() {
			if v, ok := strings.CutPrefix(s.Text(), name+": "); ok {
				return v
			}
		}

		t.Fatal("stream ended")
		return ""
	}

	first := stream("")
	log.put(0, "root", event.QueueCall, 0, 1)
	log.put(1, "root", event.QueueCall, 0, 1, 2)
	var cursor string

	for range 3 {
		cursor = field(first, "id")
		field(first, "data")
	}

	again := stream(cursor)
	seen := field(again, "id")
	if !strings.HasPrefix(seen, "cc_evt_") {
		t.Errorf("id %q", seen)
	}

	field(again, "data")
	field(again, "id")
	log.put(0, "root", event.QueueCall, 2)

	if data := field(again, "data"); !strings.Contains(data, `"n"`) {
		t.Errorf("data %q", data)
	}

	field(again, "id")
	if data := field(again, "data"); !strings.Contains(data, `"n":2`) {
		t.Errorf("the event after the resumed ones is the new one: %q", data)
	}
}
