package ami

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
	"unsafe"

	"trunkline/telephony/eventconn"
)

// captures are the captures whose messages are known, with the file that has them as JSON.
var captures = map[string]string{
	"queue-answered":          "testdata/queue-answered.jsonl",
	"answer-QueueStatus":      "../../format/asterisk/testdata/asterisk.ami/queue-status.in.jsonl",
	"answer-CoreShowChannels": "testdata/answer-CoreShowChannels.jsonl",
}

// capture returns the messages that an Asterisk wrote to one connection, without the banner.
func capture(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name + ".ami.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, messages, _ := bytes.Cut(data, []byte("\n"))
	return messages
}

func readMessages(t testing.TB, in io.Reader) []*Message {
	t.Helper()
	var messages []*Message
	for r := bufio.NewReaderSize(in, 64<<10); ; {
		m, err := readMessage(r, 1<<20)
		if errors.Is(err, io.EOF) {
			return messages
		}
		if err != nil {
			t.Fatal(err)
		}

		messages = append(messages, m)
	}
}

// asJSON returns a message as the captures have it in JSON: a repeated key is an array.
func asJSON(m *Message) map[string]any {
	o := map[string]any{}
	for _, f := range m.Fields {
		switch before := o[f.Key].(type) {
		case nil:
			o[f.Key] = f.Value
		case string:
			o[f.Key] = []any{before, f.Value}
		case []any:
			o[f.Key] = append(before, f.Value)
		}
	}

	return o
}

func TestMessagesAreThoseOfTheCapture(t *testing.T) {
	for name, messagesFile := range captures {
		file, err := os.ReadFile(messagesFile)
		if err != nil {
			t.Fatal(err)
		}

		lines := bytes.Split(bytes.TrimSpace(file), []byte("\n"))
		messages := readMessages(t, bytes.NewReader(capture(t, name)))
		if len(messages) != len(lines) {
			t.Fatalf("%s: %d messages, want %d", name, len(messages), len(lines))
		}

		for i, line := range lines {
			var want map[string]any
			if err := json.Unmarshal(line, &want); err != nil {
				t.Fatal(err)
			}
			if got := asJSON(messages[i]); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: message %d is %v, want %v", name, i, got, want)
			}
		}
	}
}

func TestBytesMaySplitAnywhere(t *testing.T) {
	data := capture(t, "queue-answered")[:3<<10]
	data = data[:bytes.LastIndex(data, []byte("\r\n\r\n"))+4]
	whole := readMessages(t, bytes.NewReader(data))
	if single := readMessages(t, iotest.OneByteReader(bytes.NewReader(data))); !reflect.DeepEqual(single, whole) {
		t.Fatalf("%d messages byte by byte, %d at once", len(single), len(whole))
	}

	for at := range data {
		split := readMessages(t, io.MultiReader(bytes.NewReader(data[:at]), bytes.NewReader(data[at:])))
		if len(split) != len(whole) {
			t.Fatalf("split at %d: %d messages, want %d", at, len(split), len(whole))
		}
	}
}

func TestMessageCutAnywhereIsAnError(t *testing.T) {
	data := []byte("Event: Hangup\r\nUniqueid: 1\r\n\r\n")
	for at := range len(data) - 1 {
		_, err := readMessage(bufio.NewReader(bytes.NewReader(data[:at])), 1<<20)
		if want := map[bool]error{true: io.EOF, false: io.ErrUnexpectedEOF}[at == 0]; !errors.Is(err, want) {
			t.Errorf("cut at %d: %v, want %v", at, err, want)
		}
	}
}

func TestMessageValues(t *testing.T) {
	m := readMessages(t,
		strings.NewReader("\r\n\r\nEvent: X\r\nAppData: a: b: c\r\nEmpty: \r\nBare:\r\nno separator\r\n"+
			"ChanVariable(AudioSocket/127.0.0.1:9092): a=1\r\nCallerIDNum: 1\r\nCallerIDNum: 2\r\nName: J\xfcrgen\x00\r\nUnix: line\n\r\n"))
	if len(m) != 1 || m[0].Name() != "X" || m[0].isResponse() {
		t.Fatalf("%d messages", len(m))
	}

	for key, want := range map[string]string{
		"AppData": "a: b: c", "Empty": "", "Bare": "", "ChanVariable(AudioSocket/127.0.0.1:9092)": "a=1",
		"CallerIDNum": "1", "calleridnum": "1", "Name": "J\uFFFDrgen\x00", "Unix": "line", "absent": "",
	} {
		if got := m[0].Get(key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}

	if n := len(m[0].Fields); n != 10 {
		t.Errorf("%d fields", n)
	}
}

// The text after a line break in a caller's number may look like a message.
func TestKindOfAMessageIsThatOfItsFirstLine(t *testing.T) {
	m := readMessages(t,
		strings.NewReader(
			"Event: OriginateResponse\r\nResponse: Failure\r\n\r\nCallerIDName: x\r\nEvent: Hangup\r\nResponse: Success\r\n\r\n"))
	if m[0].Name() != "OriginateResponse" || m[0].isResponse() {
		t.Error("an OriginateResponse is a response")
	}
	if m[1].Name() != "" || m[1].isResponse() {
		t.Error("the rest of a broken message is an event or a response")
	}
}

func TestMessageAboveTheLimitIsRefused(t *testing.T) {
	for name, data := range map[string]string{
		"one line":    strings.Repeat("x", 70<<10),
		"many lines":  strings.Repeat("a: b\r\n", 20<<10),
		"empty lines": strings.Repeat("\r\n", 40<<10),
	} {
		if _, err := readMessage(bufio.NewReaderSize(strings.NewReader(data), 4096), 64<<10); !errors.Is(err,
			ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}

	long := strings.Repeat("x", 50<<10)
	m, err := readMessage(bufio.NewReaderSize(strings.NewReader("Event: X\r\nLong: "+long+"\r\n\r\n"), 4096), 64<<10)
	if err != nil || m.Get("Long") != long {
		t.Errorf("a line longer than the buffer: %v", err)
	}
}

func FuzzReadMessage(f *testing.F) {
	for name := range captures {
		for _, m := range readMessages(f, bytes.NewReader(capture(f, name)))[:5] {
			var b bytes.Buffer
			for _, field := range m.Fields {
				fmt.Fprintf(&b, "%s: %s\r\n", field.Key, field.Value)
			}
			f.Add(append(b.Bytes(), "\r\n"...))
		}
	}

	f.Add([]byte("Event: X\r\na\r\n\r\n: \r\n\r\n\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		in := bufio.NewReaderSize(bytes.NewReader(data), 64)
		for size := 0; ; {
			m, err := readMessage(in, 1<<12)
			if err != nil {
				return
			}

			size += m.Size
			if size > len(data) {
				t.Fatalf("messages of %d bytes in %d", size, len(data))
			}

			m.Name()
			m.endsList()
			for _, field := range m.Fields {
				if !utf8.ValidString(field.Key + field.Value) {
					t.Fatalf("%q is not UTF-8", field)
				}
				if strings.Contains(field.Key+field.Value, "\n") {
					t.Fatalf("%q holds a line break", field)
				}
			}
		}
	})
}

// BenchmarkReadMessages measures the reading of events, and of the keys that every event is asked for.
func BenchmarkReadMessages(b *testing.B) {
	data := capture(b, "queue-answered")
	in := bufio.NewReaderSize(nil, 64<<10)
	messages := 0
	b.SetBytes(int64(len(data)))

	for b.Loop() {
		in.Reset(bytes.NewReader(data))
		for {
			m, err := readMessage(in, 1<<20)
			if err != nil {
				break
			}

			for _, key := range []string{"ActionID", "Uniqueid", "Linkedid", "Queue"} {
				m.Get(key)
			}

			messages++
		}
	}

	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(messages), "ns/message")
}

// A line takes much more memory than it has bytes on the wire.
func TestTheQueueBoundsMemoryOfShortLines(t *testing.T) {
	const lines, limit = 1000, 64 << 10
	q := eventconn.NewQueue(1000, limit, (*Message).memory)
	taken := 0
	for q.Put(parseMessage(bytes.Repeat([]byte("a\n"), lines))) {
		taken += lines * int(unsafe.Sizeof(Field{}))
	}
	if taken == 0 || taken > limit {
		t.Errorf("the queue takes fields of %d bytes, its limit is %d", taken, limit)
	}
}
