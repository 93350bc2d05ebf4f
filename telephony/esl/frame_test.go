package esl

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
)

const limit = 1 << 20

// capture has the output of a FreeSWITCH 1.11 during one call, as text/event-plain.
func capture(t testing.TB) []byte {
	data, err := os.ReadFile("../../format/freeswitch/testdata/simple.esl.txt")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func readEvents(t testing.TB, in io.Reader) []*Event {
	t.Helper()
	var events []*Event
	for r := bufio.NewReaderSize(in, 64<<10); ; {
		f, err := readFrame(r, limit)
		if errors.Is(err, io.EOF) {
			return events
		}
		if err != nil {
			t.Fatal(err)
		}

		e, err := parseEvent(f)
		if err != nil {
			t.Fatal(err)
		}

		events = append(events, e)
	}
}

func TestBytesMaySplitAnywhere(t *testing.T) {
	data := capture(t)
	whole := readEvents(t, bytes.NewReader(data))
	if len(whole) == 0 {
		t.Fatal("nothing was captured")
	}

	single := readEvents(t, iotest.OneByteReader(bytes.NewReader(data)))
	if len(single) != len(whole) {
		t.Fatalf("%d events byte by byte, %d at once", len(single), len(whole))
	}

	cut := bytes.Index(data, []byte("BACKGROUND_JOB"))
	for at := cut - 300; at < cut+900; at++ {
		split := readEvents(t, io.MultiReader(bytes.NewReader(data[:at]), bytes.NewReader(data[at:])))
		if len(split) != len(whole) {
			t.Fatalf("split at %d: %d events, want %d", at, len(split), len(whole))
		}
	}
}

func FuzzReadFrame(f *testing.F) {
	f.Add([]byte("Content-Type: auth/request\n\n"))
	f.Add([]byte("\n\nContent-Type: command/reply\r\nReply-Text: +OK Job-UUID: 1\r\n\r\n"))
	f.Add([]byte("Content-Type: text/event-plain\nContent-Length: 38\n\nEvent-Name: X\nContent-Length: 3\n\n+OK tail"))
	f.Add([]byte("Content-Type: text/event-json\nContent-Length: 30\n\n" + `{"Event-Name":"X","a":["b"]}  `))

	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 4 << 10
		read := func(in io.Reader) (kinds []string, err error) {
			for r := bufio.NewReaderSize(in, 64<<10); ; {
				fr, err := readFrame(r, limit)
				if err != nil {
					return kinds, err
				}

				if len(fr.body) > limit {
					t.Fatalf("a body of %d bytes", len(fr.body))
				}

				kinds = append(kinds, fr.contentType())
				if kind := fr.contentType(); kind == typePlain || kind == typeJSON {
					if e, err := parseEvent(fr); err == nil && e.Name() == "" {
						t.Fatal("an event without a name")
					}
				}
			}
		}

		whole, err := read(bytes.NewReader(data))
		single, err1 := read(iotest.OneByteReader(bytes.NewReader(data)))
		if strings.Join(whole, ";") != strings.Join(single, ";") || err.Error() != err1.Error() {
			t.Fatalf("at once: %q, %v; byte by byte: %q, %v", whole, err, single, err1)
		}
	})
}
