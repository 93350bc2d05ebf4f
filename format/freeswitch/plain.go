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
func splitPlain(body []byte, emit split.Sink) error {
	if err := split.CheckUTF8(body); err != nil {
		return err
	}
	p := plainParser{data: body}
	for p.skipBlank(); p.at < len(body); p.skipBlank() {
		start := p.at
		headers, err := p.headers()
		if err != nil {
			return err
		}
		if envelope(headers) {
			err = p.enveloped(start, headers, emit)
		} else {
			err = p.event(start, headers, emit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// maxEscape is the factor by which URL-encoding can lengthen text.
const maxEscape = 3

// maxHeaders bounds the headers of a record, at `"a":"",` each.
const maxHeaders = split.MaxRecord / 7

type plainParser struct {
	data []byte
	at   int
}

type plainHeader struct{ name, value string }

// envelope reports whether headers are those of a frame of the socket: an event has a
// name.
func envelope(headers []plainHeader) bool {
	_, named := find(headers, "Event-Name")
	_, typed := find(headers, "Content-Type")
	return typed && !named
}

func find(headers []plainHeader, name string) (string, bool) {
	for _, h := range headers {
		if strings.EqualFold(h.name, name) {
			return h.value, true
		}
	}
	return "", false
}

// enveloped emits the event inside a frame with the given headers.
func (p *plainParser) enveloped(start int, headers []plainHeader, emit split.Sink) error {
	if kind, _ := find(headers, "Content-Type"); kind != "text/event-plain" {
		return split.Malformed(start, "a frame of the event socket that is not text/event-plain")
	}
	content, err := p.content(start, headers)
	if err != nil {
		return err
	}
	end := p.at
	inner := plainParser{data: p.data[:end], at: end - len(content)}
	inner.skipBlank()
	at := inner.at
	event, err := inner.headers()
	if err != nil {
		return err
	}
	if err := inner.event(at, event, emit); err != nil {
		return err
	}
	if inner.skipBlank(); inner.at < end {
		return split.Malformed(inner.at, "something follows the event in its frame")
	}
	return nil
}

// event emits an event with the given headers, and the body that they announce.
func (p *plainParser) event(start int, headers []plainHeader, emit split.Sink) error {
	if len(headers) == 0 {
		return split.Malformed(start, "an event has no headers")
	}
	content, err := p.content(start, headers)
	if err != nil {
		return err
	}
	if p.at-start > maxEscape*split.MaxRecord {
		return split.RecordTooLarge(start)
	}
	return emit(appendEvent(nil, headers, content), start)
}

// content reads the bytes announced by Content-Length, nil without one.
func (p *plainParser) content(start int, headers []plainHeader) ([]byte, error) {
	length, ok := find(headers, "Content-Length")
	if !ok {
		return nil, nil
	}
	n, err := strconv.ParseUint(length, 10, 31)
	if err != nil {
		return nil, split.Malformed(start, "a Content-Length is not a number")
	}
	if int(n) > len(p.data)-p.at {
		return nil, split.Malformed(start, "the body ends before its Content-Length")
	}
	content := p.data[p.at : p.at+int(n)]
	if !utf8.Valid(content) {
		return nil, split.Malformed(start, "a Content-Length ends within a character")
	}
	p.at += int(n)
	return content, nil
}

// headers reads lines of "Name: value" and the blank line that ends them.
func (p *plainParser) headers() ([]plainHeader, error) {
	var headers []plainHeader
	for p.at < len(p.data) {
		start := p.at
		line := p.line()
		if line == "" {
			break
		}
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, split.Malformed(start, "not a header: want Name: value")
		}
		if len(headers) == maxHeaders {
			return nil, split.RecordTooLarge(start)
		}
		headers = append(headers, plainHeader{name, strings.TrimSpace(value)})
	}
	return headers, nil
}

// line reads one line and its end, which is \n or \r\n.
func (p *plainParser) line() string {
	rest := p.data[p.at:]
	if i := bytes.IndexByte(rest, '\n'); i >= 0 {
		rest = rest[:i]
		p.at++
	}
	p.at += len(rest)
	return string(bytes.TrimSuffix(rest, []byte("\r")))
}

func (p *plainParser) skipBlank() {
	for p.at < len(p.data) && (p.data[p.at] == '\n' || p.data[p.at] == '\r') {
		p.at++
	}
}
