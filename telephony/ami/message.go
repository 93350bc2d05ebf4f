package ami

import (
	"bufio"
	"errors"
	"io"
	"strings"
)

const lineBreaks = "\r\n\x00"

// Field is one line of a message or an action.
type Field struct{ Key, Value string }

// Message is one response or event: its lines in the order on the wire, at least one.
type Message struct {
	Fields []Field
	Size   int // bytes on the wire
}

// fieldBytes is the size of a Field without its texts, on 64-bit systems.
const fieldBytes = 32

// memory returns the message's size in memory, in bytes. It is much larger than Size if the lines are
// short.
func (m *Message) memory() int { return m.Size + len(m.Fields)*fieldBytes }

// Get returns the value of the first occurrence of a key, or "" if there is none. Keys are compared
// case-insensitively: Asterisk writes Uniqueid in some events and UniqueID in others.
func (m *Message) Get(key string) string {
	for i := range m.Fields {
		if len(m.Fields[i].Key) == len(key) && strings.EqualFold(m.Fields[i].Key, key) {
			return m.Fields[i].Value
		}
	}
	return ""
}

// Name returns the name of an event, such as QueueCallerJoin. It is "" for a response, and for a
// message that is neither.
func (m *Message) Name() string {
	if m.Fields[0].Key != "Event" {
		return ""
	}
	return m.Fields[0].Value
}

// isResponse reports whether the message is the response to an action. OriginateResponse is an event
// that has a Response key too.
func (m *Message) isResponse() bool { return m.Fields[0].Key == "Response" }

// endsList reports whether an event ends the response to a list action.
func (m *Message) endsList() bool {
	return strings.EqualFold(m.Get("EventList"), "Complete") || strings.HasSuffix(m.Name(), "Complete")
}

// readMessage reads the next message. It returns io.EOF only for end of input between messages. Empty
// lines before a message are skipped.
func readMessage(in *bufio.Reader, limit int) (*Message, error) {
	var block []byte
	for skipped := 0; ; {
		line, err := in.ReadSlice('\n')
		if len(block)+len(line)+skipped > limit {
			return nil, ErrTooLarge
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			block = append(block, line...)
			continue
		}
		if err != nil {
			if len(block)+len(line) > 0 && errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}

		if !endsMessage(block, line) {
			block = append(block, line...)
			continue
		}
		if len(block) > 0 {
			return parseMessage(block), nil
		}

		skipped += len(line)
	}
}

// endsMessage reports whether line is the empty line after a message. It is not if it is the end of a
// line that was longer than the reader's buffer.
func endsMessage(block, line []byte) bool {
	if len(block) > 0 && block[len(block)-1] != '\n' {
		return false
	}
	return len(line) == 1 || len(line) == 2 && line[0] == '\r'
}

// parseMessage parses lines of "Key: Value". The block has at least one line.
func parseMessage(block []byte) *Message {
	text := strings.ToValidUTF8(string(block), "\uFFFD")
	m := &Message{Fields: make([]Field, 0, strings.Count(text, "\n")), Size: len(block)}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		m.Fields = append(m.Fields, parseField(strings.TrimSuffix(line, "\r")))
	}
	return m
}

// parseField splits a line at the first colon that is followed by a space. A key may contain a colon
// ("ChanVariable(AudioSocket/127.0.0.1:9092)"). A line without one is a key without a value.
func parseField(line string) Field {
	key, value, ok := strings.Cut(line, ": ")
	if !ok {
		key = strings.TrimSuffix(key, ":")
	}
	return Field{key, value}
}
