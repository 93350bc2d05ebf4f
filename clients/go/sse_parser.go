package trunkline

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
)

const maxEventBytes = 8 << 20 // of one event

type serverSentEvent struct {
	data []byte
	id   string
}

// eventStreamParser parses an event stream (HTML standard, section 9.2.6).
type eventStreamParser struct {
	rest []byte   // the beginning of a line
	data [][]byte // the data lines of the event that has begun
	size int      // bytes of these lines
	id   string   // the last id
}

var closeComment = regexp.MustCompile(`^:\s*(\d{4})\b\s*(.*)`)

// feed returns the complete events, and the error that ends the stream after them: that of a
// close comment, or of an event that is too large.
func (p *eventStreamParser) feed(chunk []byte) (events []serverSentEvent, closed error) {
	p.rest = append(p.rest, chunk...)
	for {
		line, rest, complete := bytes.Cut(p.rest, []byte("\n"))
		if !complete {
			p.rest = bytes.Clone(p.rest) // the events refer to its lines
			break
		}

		p.rest = rest
		line = bytes.TrimSuffix(line, []byte("\r"))
		switch {
		case len(line) == 0:
			if len(p.data) > 0 {
				events = append(events, serverSentEvent{bytes.Join(p.data, []byte("\n")), p.id})
			}
			p.data, p.size = nil, 0
		case bytes.HasPrefix(line, []byte("data:")):
			p.data = append(p.data, bytes.TrimPrefix(line[5:], []byte(" ")))
			p.size += len(line)
		case bytes.HasPrefix(line, []byte("id:")):
			p.id = string(bytes.TrimPrefix(line[3:], []byte(" ")))
		case line[0] == ':':
			said := closeComment.FindSubmatch(line)
			if said != nil {
				code, _ := strconv.Atoi(string(said[1])) // four digits
				return events, &CloseError{code, string(said[2])}
			}
		}
	}

	if p.size+len(p.rest) > maxEventBytes {
		return events, fmt.Errorf("%w: an event has more than %d bytes", ErrProtocol, maxEventBytes)
	}

	return events, nil
}
