package freeswitch

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"trunkline/format/split"
)

// splitPlain splits FreeSWITCH's text/event-plain: events in the format of the event
// socket, each in its envelope (Content-Length and Content-Type, a blank line, and
// that many bytes), or bare, with a blank line between them. A record is the event's
// decoded headers in order as one JSON object, as in FreeSWITCH's own JSON: arrays as
// arrays, a body under "_body", and repeated names repeated.
func splitPlain(body []byte, to split.Sink) error {
	if err := split.CheckUTF8(body); err != nil {
		return err
	}

	p := plainParser{data: body}
	for p.skipBlank(); p.pos < len(body); p.skipBlank() {
		start := p.pos
		headers, err := p.readHeaders()
		if err != nil {
			return err
		}

		if isEnvelope(headers) {
			err = p.emitEnveloped(start, headers, to)
		} else {
			err = p.emitEvent(start, headers, to)
		}

		if err != nil {
			return err
		}
	}

	return nil
}

// maxEscapeFactor is the factor by which URL-encoding can lengthen text.
const maxEscapeFactor = 3

// maxHeaders bounds the headers of a record, at `"a":"",` each.
const maxHeaders = split.MaxRecord / 7

type plainParser struct {
	data []byte
	pos  int
}

type plainHeader struct{ name, value string }

// isEnvelope reports whether headers are those of a frame of the socket: an event has a
// name.
func isEnvelope(headers []plainHeader) bool {
	_, named := findHeader(headers, "Event-Name")
	_, typed := findHeader(headers, "Content-Type")
	return typed && !named
}

func findHeader(headers []plainHeader, name string) (string, bool) {
	for _, h := range headers {
		if strings.EqualFold(h.name, name) {
			return h.value, true
		}
	}
	return "", false
}

// emitEnveloped emits the event inside a frame with the given headers.
func (p *plainParser) emitEnveloped(start int, headers []plainHeader, to split.Sink) error {
	kind, _ := findHeader(headers, "Content-Type")
	if kind != "text/event-plain" {
		return split.Malformed(start, "a frame of the event socket that is not text/event-plain")
	}

	content, err := p.readContent(start, headers)
	if err != nil {
		return err
	}

	end := p.pos
	// On the whole body, so that its offsets are those of the body.
	inner := plainParser{data: p.data[:end], pos: end - len(content)}
	inner.skipBlank()
	eventStart := inner.pos
	event, err := inner.readHeaders()
	if err != nil {
		return err
	}

	if err := inner.emitEvent(eventStart, event, to); err != nil {
		return err
	}

	inner.skipBlank()
	if inner.pos < end {
		return split.Malformed(inner.pos, "something follows the event in its frame")
	}

	return nil
}

// emitEvent emits an event with the given headers, and the body that they announce.
func (p *plainParser) emitEvent(start int, headers []plainHeader, to split.Sink) error {
	if len(headers) == 0 {
		return split.Malformed(start, "an event has no headers")
	}

	content, err := p.readContent(start, headers)
	if err != nil {
		return err
	}

	if p.pos-start > maxEscapeFactor*split.MaxRecord {
		return split.RecordTooLarge(start)
	}

	return to.TakeBuilt(appendEvent(nil, headers, content), start)
}

// readContent reads the bytes announced by Content-Length, nil without one.
func (p *plainParser) readContent(start int, headers []plainHeader) ([]byte, error) {
	length, ok := findHeader(headers, "Content-Length")
	if !ok {
		return nil, nil
	}

	n, err := strconv.ParseUint(length, 10, 31)
	if err != nil {
		return nil, split.Malformed(start, "a Content-Length is not a number")
	}

	if int(n) > len(p.data)-p.pos {
		return nil, split.Malformed(start, "the body ends before its Content-Length")
	}

	content := p.data[p.pos : p.pos+int(n)]
	if !utf8.Valid(content) {
		return nil, split.Malformed(start, "a Content-Length ends within a character")
	}

	p.pos += int(n)
	return content, nil
}

// readHeaders reads lines of "Name: value" and the blank line that ends them.
func (p *plainParser) readHeaders() ([]plainHeader, error) {
	var headers []plainHeader
	for p.pos < len(p.data) {
		start := p.pos
		line := p.readLine()
		if line == "" {
			break
		}

		name, value, ok := strings.Cut(line, ":")
		name = strings.TrimSpace(name)
		if !ok || name == "" {
			return nil, split.Malformed(start, "not a header: want Name: value")
		}
		if len(headers) == maxHeaders {
			return nil, split.RecordTooLarge(start)
		}

		headers = append(headers, plainHeader{name, strings.TrimSpace(value)})
	}

	return headers, nil
}

// readLine reads one line and its end, which is \n or \r\n.
func (p *plainParser) readLine() string {
	rest := p.data[p.pos:]
	i := bytes.IndexByte(rest, '\n')
	if i >= 0 {
		rest = rest[:i]
		p.pos++
	}
	p.pos += len(rest)
	return string(bytes.TrimSuffix(rest, []byte("\r")))
}

func (p *plainParser) skipBlank() {
	for p.pos < len(p.data) && (p.data[p.pos] == '\n' || p.data[p.pos] == '\r') {
		p.pos++
	}
}
