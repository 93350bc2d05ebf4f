package sip

import (
	"bytes"
	"errors"
	"sync"

	sipmsg "github.com/emiago/sipgo/sip"

	"trunkline/internal/panics"
)

// Places of recovered panics.
const (
	placeDatagram = "sip_datagram" // the stack, on the goroutine that reads UDP
	placeParse    = "sip_parse"    // the parser
	placeRequest  = "sip_request"  // the handler of a request
	placeCall     = "sip_call"     // a goroutine of one call
	placeSDP      = "sdp"          // the parser of session descriptions
)

// errPanicked is the error of a function that panicked.
var errPanicked = errors.New("sip: internal error")

// parseSession is ParseSession. A panic of the parser is an error.
func (s *Server) parseSession(body []byte) (session *Session, err error) {
	err = errPanicked
	s.panics.Do(placeSDP, func() { session, err = ParseSession(body) })
	return session, err
}

// inspector parses messages before the stack does, on a goroutine that can recover a panic: the stack
// parses streams, and looks up the transaction of each message, on its own goroutines.
type inspector struct {
	panics  *panics.Recoverer
	metrics *metrics
	parser  *sipmsg.Parser

	mu      sync.Mutex
	partial map[string]*stream // of connections that the stack has opened, by their two addresses
}

func newInspector(p *panics.Recoverer, m *metrics) *inspector {
	return &inspector{panics: p, metrics: m, parser: sipmsg.NewParser(), partial: map[string]*stream{}}
}

// message reports whether the stack can handle a datagram.
func (i *inspector) message(data []byte) bool {
	ok := false
	i.panics.Do(placeParse, func() {
		m, err := i.parser.ParseSIP(data)
		if err == nil {
			lookUp(m)
			ok = true
		}
	})
	if !ok {
		i.metrics.malformed.Inc()
	}
	return ok
}

// stream inspects what is read from one connection.
type stream struct {
	inspector *inspector
	parser    *sipmsg.ParserStream
	partial   bool // the last message is incomplete
}

func (i *inspector) stream() *stream {
	return &stream{inspector: i, parser: i.parser.NewSIPStream()}
}

// readable reports whether the stack can handle the next bytes.
func (s *stream) readable(data []byte) bool {
	if isPing(data) {
		return true
	}
	ok := false
	s.inspector.panics.Do(placeParse, func() {
		err := s.parser.ParseSIPStream(data, lookUp)
		s.partial = err == sipmsg.ErrParseSipPartial
		ok = err == nil || s.partial
	})
	if !ok {
		s.inspector.metrics.malformed.Inc()
	}
	return ok
}

// isPing reports whether the stack handles data as a keep-alive instead of parsing it (RFC 5626, section
// 3.5.1).
func isPing(data []byte) bool {
	return len(data) <= 4 && len(bytes.Trim(data, "\r\n")) == 0 || len(bytes.Trim(data, "\x00")) == 0
}

// maxPartial is the largest number of incomplete messages on connections that the stack has opened.
const maxPartial = 1024

// dialled inspects the bytes that the stack reads from a connection that it has opened itself, to a
// trunk or a phone. It is not notified of the end of such a connection, so it stores state only for an
// incomplete message.
func (i *inspector) dialled(local, remote string, data []byte) error {
	key := local + " " + remote
	i.mu.Lock()
	s := i.partial[key]
	delete(i.partial, key)
	i.mu.Unlock()
	if s == nil {
		s = i.stream()
	}
	if !s.readable(data) {
		return errUnreadable
	}
	if !s.partial {
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.partial) >= maxPartial {
		clear(i.partial) // mostly of connections that have ended
	}
	i.partial[key] = s
	return nil
}

// lookUp applies to a message the functions that the stack calls before it calls this package. The
// stack handles their errors.
func lookUp(m sipmsg.Message) {
	switch m := m.(type) {
	case *sipmsg.Request:
		_, _ = sipmsg.ServerTxKeyMake(m)
		sipmsg.NewResponseFromRequest(m, 400, "Bad Request", nil)
	case *sipmsg.Response:
		_, _ = sipmsg.ClientTxKeyMake(m)
	}
}
