package esl

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"strings"
	"testing"
	"unsafe"

	"trunkline/telephony/eventconn"
)

// The same call was captured in both formats: decoded, they must be the same.
func TestPlainAndJSONAreTheSameEvents(t *testing.T) {
	plain := readEvents(t, bytes.NewReader(capture(t)))
	file, err := os.ReadFile("../../format/freeswitch/testdata/simple.jsonl")
	if err != nil {
		t.Fatal(err)
	}

	lines := bytes.Split(bytes.TrimSpace(file), []byte("\n"))
	if len(lines) != len(plain) {
		t.Fatalf("%d events in plain, %d in JSON", len(plain), len(lines))
	}

	for i, line := range lines {
		fromJSON, err := parseEvent(frame{headers: headers{{"Content-Type", typeJSON}}, body: line})
		if err != nil {
			t.Fatal(err)
		}

		if got, want := decoded(plain[i]), decoded(fromJSON); !maps.Equal(got, want) {
			for name := range want {
				if got[name] != want[name] {
					t.Errorf("event %d: %s is %q in plain, %q in JSON", i, name, got[name], want[name])
				}
			}
		}
	}
}

func decoded(e *Event) map[string]string {
	values := map[string]string{"_body": e.Body()}
	for _, h := range e.headers {
		values[h.name] = e.Get(h.name)
	}
	return values
}

func TestEventValues(t *testing.T) {
	const body = "Event-Name: CUSTOM\nvariable_nolocal:x: a%20b%0A\nvariable_bad: 100%\nvariable_plus: a+b\n" +
		"variable_empty: \nTwice: 1\nTwice: 2\nContent-Length: 5\n\n+OK\n\n"
	e, err := parsePlain([]byte(body))
	if err != nil {
		t.Fatal(err)
	}

	for name, want := range map[string]string{
		"variable_nolocal:x": "a b\n", "variable_bad": "100%", "variable_plus": "a+b", "variable_empty": "",
		"twice": "1", "absent": "", "Event-name": "CUSTOM",
	} {
		if got := e.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}

	if e.Body() != "+OK\n\n" {
		t.Errorf("body %q", e.Body())
	}

	list, err := parseJSON([]byte(`{"Event-Name":"X","many":["1","2"],"n":7,"_body":"b"}`))
	if err != nil || list.Get("many") != "1" || list.Get("n") != "7" || list.Body() != "b" {
		t.Errorf("JSON: %+v, %v", list, err)
	}

	for _, bad := range []string{`{"Event-Name":{}}`, `{"Event-Name":"X","a":{}}`, `{"Event-Name":"X","a":[1]}`, `[]`,
		`{}`} {
		if _, err := parseJSON([]byte(bad)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func FuzzParseJSON(f *testing.F) {
	f.Add([]byte(`{"Event-Name":"X","a":["b"],"c":1,"_body":"d"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := parseJSON(data)
		if err == nil && (e.Name() == "" || !json.Valid(data)) {
			t.Fatalf("%q was taken for an event", data)
		}
	})
}

// A header takes much more memory than it has bytes on the wire.
func TestTheQueueBoundsMemoryOfShortHeaders(t *testing.T) {
	const lines, limit = 1000, 64 << 10
	q := eventconn.NewQueue(1000, limit, (*Event).memory)
	taken := 0

	for {
		e, err := parsePlain([]byte("Event-Name: X\n" + strings.Repeat("a:\n", lines)))
		if err != nil {
			t.Fatal(err)
		}

		if !q.Put(e) {
			break
		}

		taken += lines * int(unsafe.Sizeof(header{}))
	}

	if taken == 0 || taken > limit {
		t.Errorf("the queue takes headers of %d bytes, its limit is %d", taken, limit)
	}
}
