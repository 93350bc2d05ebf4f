package esl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Event is one event of the switch.
type Event struct {
	headers headers
	content string // the body
	json    []byte // set with Config.Raw, without the other fields
	encoded bool   // values are %XX encoded, as in text/event-plain
	size    int    // bytes on the wire
}

// headerBytes is the size of a header without its texts, on 64-bit systems.
const headerBytes = 32

// memory returns the event's size in memory, in bytes. It is much larger than size if the headers are
// short.
func (e *Event) memory() int { return e.size + len(e.headers)*headerBytes }

// Get returns the decoded value of a header, or "" if the event does not have it. For a repeated
// header or a list it returns the first value.
func (e *Event) Get(name string) string {
	value := e.headers.first(name)
	if !e.encoded {
		return value
	}
	value = unescape(value)
	if list, ok := strings.CutPrefix(value, "ARRAY::"); ok {
		value, _, _ = strings.Cut(list, "|:")
	}
	return value
}

// Raw returns the unchanged event with Config.Raw: one JSON object, which was not validated. All other
// methods return zero values for such an event.
func (e *Event) Raw() []byte { return e.json }

// Name returns the Event-Name, such as CHANNEL_ANSWER.
func (e *Event) Name() string { return e.Get("Event-Name") }

// Body returns the event's body, such as the result of a BACKGROUND_JOB.
func (e *Event) Body() string { return e.content }

// Sequence returns the switch's number of the event. ok is false if it has none.
func (e *Event) Sequence() (n uint64, ok bool) {
	n, err := strconv.ParseUint(e.Get("Event-Sequence"), 10, 64)
	return n, err == nil
}

func parseEvent(f frame) (*Event, error) {
	if f.contentType() == typeJSON {
		return parseJSON(f.body)
	}
	return parsePlain(f.body)
}

// parsePlain parses a text/event-plain body: a message within the message, with its own Content-Length
// if the event has a body.
func parsePlain(body []byte) (*Event, error) {
	h, rest, err := parseHeaders(string(body))
	if err != nil {
		return nil, err
	}
	length, err := contentLength(h, len(rest))
	if err != nil {
		return nil, fmt.Errorf("%w: an event's body is longer than its message", ErrMalformed)
	}
	return requireName(&Event{headers: h, content: rest[:length], encoded: true, size: len(body)})
}

// parseJSON parses a text/event-json body: one flat object, in which a header with several values is
// an array.
func parseJSON(body []byte) (*Event, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(body, &object); err != nil {
		return nil, fmt.Errorf("%w: an event that is not a JSON object", ErrMalformed)
	}

	e := &Event{headers: make(headers, 0, len(object)), size: len(body)}
	for name, raw := range object {
		value, err := jsonValue(raw)
		if err != nil {
			return nil, err
		}

		if name == "_body" {
			e.content = value
			continue
		}

		e.headers = append(e.headers, header{name, value})
	}

	return requireName(e)
}

// jsonValue returns the text of a header's value; of an array, that of its first element.
func jsonValue(raw json.RawMessage) (string, error) {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return one, nil
	}

	var many []string
	if json.Unmarshal(raw, &many) == nil && len(many) > 0 {
		return many[0], nil
	}

	raw = bytes.TrimSpace(raw)
	if len(raw) > 0 && raw[0] != '{' && raw[0] != '[' {
		return string(raw), nil // a number or a boolean
	}

	return "", fmt.Errorf("%w: an event with a header that is neither text nor a list of texts", ErrMalformed)
}

func requireName(e *Event) (*Event, error) {
	if e.Name() == "" {
		return nil, fmt.Errorf("%w: an event without Event-Name", ErrMalformed)
	}
	return e, nil
}
