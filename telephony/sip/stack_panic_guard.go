package sip

import (
	"bytes"
	"sync"

	sipmsg "github.com/emiago/sipgo/sip"

	"trunkline/internal/panics"
)

// stackPanicGuard keeps from the stack the messages on which it would panic. The stack parses streams, and looks up the
// transaction of each message, on its own goroutines, where a panic ends the process. Therefore each message is parsed
// here before, on a goroutine that can recover a panic, and is dropped if that fails.
type stackPanicGuard struct {
	panics  *panics.Recoverer
	metrics *metrics
	parser  *sipmsg.Parser

	mu sync.Mutex
	// partialStreams has the incomplete messages of connections that the stack has opened, by their two addresses.
	partialStreams map[string]*streamPanicGuard
}

func newStackPanicGuard(p *panics.Recoverer, m *metrics) *stackPanicGuard {
	return &stackPanicGuard{panics: p, metrics: m, parser: sipmsg.NewParser(),
		partialStreams: map[string]*streamPanicGuard{}}
}

// checkDatagram reports whether the stack can handle a datagram.
func (g *stackPanicGuard) checkDatagram(data []byte) bool {
	ok := false
	g.panics.Do(placeParse, func() {
		m, err := g.parser.ParseSIP(data)
		if err == nil {
			exerciseStack(m)
			ok = true
		}
	})

	if !ok {
		g.metrics.malformed.Inc()
	}

	return ok
}

// streamPanicGuard checks the bytes read from one connection.
type streamPanicGuard struct {
	guard      *stackPanicGuard
	parser     *sipmsg.ParserStream
	incomplete bool // the last message is incomplete
}

func (g *stackPanicGuard) newStream() *streamPanicGuard {
	return &streamPanicGuard{guard: g, parser: g.parser.NewSIPStream()}
}

// check reports whether the stack can handle the next bytes.
func (s *streamPanicGuard) check(data []byte) bool {
	if isPing(data) {
		return true
	}

	ok := false
	s.guard.panics.Do(placeParse, func() {
		err := s.parser.ParseSIPStream(data, exerciseStack)
		s.incomplete = err == sipmsg.ErrParseSipPartial
		ok = err == nil || s.incomplete
	})

	if !ok {
		s.guard.metrics.malformed.Inc()
	}

	return ok
}

// isPing reports whether the stack handles data as a keep-alive instead of parsing it (RFC 5626, section
// 3.5.1).
func isPing(data []byte) bool {
	return len(data) <= 4 && len(bytes.Trim(data, "\r\n")) == 0 || len(bytes.Trim(data, "\x00")) == 0
}

// maxPartialStreams is the largest number of incomplete messages on connections that the stack has opened.
const maxPartialStreams = 1024

// checkOutbound parses the bytes that the stack reads from a connection that it has opened itself, to a
// trunk or a phone. It is not notified of the end of such a connection, so it stores state only for an
// incomplete message.
func (g *stackPanicGuard) checkOutbound(local, remote string, data []byte) error {
	key := local + " " + remote
	g.mu.Lock()
	s := g.partialStreams[key]
	delete(g.partialStreams, key)
	g.mu.Unlock()

	if s == nil {
		s = g.newStream()
	}
	if !s.check(data) {
		return errMalformedStream
	}
	if !s.incomplete {
		return nil
	}

	g.mu.Lock()
	defer g.mu.Unlock()

	if len(g.partialStreams) >= maxPartialStreams {
		clear(g.partialStreams) // mostly of connections that have ended
	}

	g.partialStreams[key] = s
	return nil
}

// exerciseStack calls the sipgo functions that the stack will call for this message, so that a panic is
// recovered here; the stack handles their errors.
func exerciseStack(m sipmsg.Message) {
	switch m := m.(type) {
	case *sipmsg.Request:
		_, _ = sipmsg.ServerTxKeyMake(m)
		sipmsg.NewResponseFromRequest(m, 400, "Bad Request", nil)
	case *sipmsg.Response:
		_, _ = sipmsg.ClientTxKeyMake(m)
	}
}
