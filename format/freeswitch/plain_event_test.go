package freeswitch

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"trunkline/format/split"
)

// The two files are the same events of one FreeSWITCH 1.10 session, in the two
// encodings that the event socket offers.
func TestPlainEventsBecomeFreeSWITCHsOwnJSON(t *testing.T) {
	plain, err := os.ReadFile("testdata/simple.esl.txt")
	if err != nil {
		t.Fatal(err)
	}

	want, err := os.ReadFile("testdata/simple.jsonl")
	if err != nil {
		t.Fatal(err)
	}

	lines := bytes.Split(bytes.TrimSpace(want), []byte("\n"))
	n := 0
	err = splitPlain(plain, split.Sink{Take: func(record []byte, _ int) error {
		// Tokens rather than maps: order and repeated names count.
		if got, want := tokens(t, record), tokens(t, lines[n]); !slices.Equal(got, want) {
			t.Errorf("event %d:\n got %q\nwant %q", n, got, want)
		}
		n++
		return nil
	}})
	if err != nil || n != len(lines) {
		t.Fatalf("%d events of %d, error %v", n, len(lines), err)
	}
}

// tokens returns the tokens of a JSON object, in order.
func tokens(t *testing.T, record []byte) (all []any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(record))
	for d.More() || len(all) == 0 || d.InputOffset() < int64(len(record)) {
		token, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, token)
	}

	return all
}

func TestSplitPlain(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		want       []string
		fault      string
	}{
		{"bare events", "Event-Name: A\nX: 1%202\n\nEvent-Name: B\n\n\n",
			[]string{`{"Event-Name":"A","X":"1 2"}`, `{"Event-Name":"B"}`}, ""},
		{"CRLF, no blank line at the end", "Event-Name: A\r\nX:\r\n\r\nEvent-Name: B",
			[]string{`{"Event-Name":"A","X":""}`, `{"Event-Name":"B"}`}, ""},
		{"a body under _body", "Event-Name: A\nContent-Length: 5\n\na\n\"%2\nEvent-Name: B\n", []string{
			`{"Event-Name":"A","Content-Length":"5","_body":"a\n\"%2"}`, `{"Event-Name":"B"}`}, ""},
		{"an envelope", "Content-Length: 15\nContent-Type: text/event-plain\n\nEvent-Name: A\n\nEvent-Name: B\n",
			[]string{
				`{"Event-Name":"A"}`, `{"Event-Name":"B"}`}, ""},
		{"an event with a Content-Type is no envelope",
			"Event-Name: MESSAGE\nContent-Type: text/plain\nContent-Length: 2\n\nhi",
			[]string{`{"Event-Name":"MESSAGE","Content-Type":"text/plain","Content-Length":"2","_body":"hi"}`}, ""},
		{"a plus and a stray percent stay", "A: 1+2%3d%zz%4\n", []string{`{"A":"1+2=%zz%4"}`}, ""},
		{"Latin-1 stays encoded", "A: M%FCller\n", []string{`{"A":"M%FCller"}`}, ""},
		{"arrays", "A: ARRAY::1|:%32|:\nB: ARRAY::\n", []string{`{"A":["1","2",""],"B":"ARRAY::"}`}, ""},
		{"nothing can leave its string", "A\"\\: %22,%22b%22:%00%0a\n", []string{`{"A\"\\":"\",\"b\":\u0000\n"}`}, ""},
		{"a repeated name is repeated", "A: 1\nA: 2\n", []string{`{"A":"1","A":"2"}`}, ""},
		{"empty", "", nil, ""},
		{"only blank lines", "\n\r\n\n", nil, ""},

		{"not a header", "Event-Name: A\n\nnonsense\n", nil, "Line 3: not a header: want Name: value"},
		{"no name", "Event-Name: A\n: b\n", nil, "Line 2: not a header: want Name: value"},
		{"a reply of the socket", "\nContent-Type: command/reply\nReply-Text: +OK\n\n", nil,
			"Line 2: a frame of the event socket that is not text/event-plain"},
		{"an event in JSON", "Content-Length: 2\nContent-Type: text/event-json\n\n{}", nil,
			"Line 1: a frame of the event socket that is not text/event-plain"},
		{"ends within its frame", "Content-Length: 99\nContent-Type: text/event-plain\n\nEvent-Name: A\n\n", nil,
			"Line 1: the body ends before its Content-Length"},
		{"a negative length", "Event-Name: A\nContent-Length: -1\n\n", nil, "Line 1: a Content-Length is not a number"},
		{"an endless length", "Event-Name: A\nContent-Length: 99999999999999999999\n\n", nil,
			"Line 1: a Content-Length is not a number"},
		{"a length that cuts a character", "Event-Name: A\nContent-Length: 1\n\né", nil,
			"Line 1: a Content-Length ends within a character"},
		{"an empty frame", "Content-Length: 0\nContent-Type: text/event-plain\n\n", nil,
			"Line 4: an event has no headers"},
		{"two events in a frame",
			"Content-Length: 30\nContent-Type: text/event-plain\n\nEvent-Name: A\n\nEvent-Name: B\n\n", nil,
			"Line 6: something follows the event in its frame"},
		{"an event's body that leaves its frame",
			"Content-Length: 33\nContent-Type: text/event-plain\n\nEvent-Name: A\nContent-Length: 9\n\nabcdefghijkl",
			nil,
			"Line 4: the body ends before its Content-Length"},
		{"invalid UTF-8", "A: b\nC: \xff\n", nil, "Line 2: not valid UTF-8"},
		{"too many headers", strings.Repeat("a:\n", maxHeaders+1), nil, "Line 149797: a record is over 1 MiB"},
		{"too large", "A: b\n\nB: " + strings.Repeat("x", maxEscapeFactor*split.MaxRecord), nil,
			"Line 3: a record is over 1 MiB"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, fault := collect(splitPlain, tc.body)
			if !slices.Equal(got, tc.want) || fault != tc.fault {
				t.Errorf("got %.300q, fault %q; want %q, fault %q", got, fault, tc.want, tc.fault)
			}
		})
	}
}

func FuzzSplitPlain(f *testing.F) {
	f.Add([]byte("Content-Length: 15\nContent-Type: text/event-plain\n\nEvent-Name: A\n\nEvent-Name: B\nContent-Length: 2\n\n%%"))
	f.Add([]byte("A: ARRAY::1|:%ff|:\"\nContent-Length: 0\n\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		err := splitPlain(body, split.Sink{Take: func(record []byte, at int) error {
			if !json.Valid(record) || record[0] != '{' || at > len(body) {
				t.Fatalf("emitted %q", record)
			}
			return nil
		}})
		if err != nil && !strings.HasPrefix(split.WithLine(err, body).Error(), "Line ") {
			t.Fatalf("fault without its line: %v", err)
		}
	})
}
