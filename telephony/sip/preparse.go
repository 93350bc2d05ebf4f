package sip

import (
	"bytes"
	"sync"

	sipmsg "github.com/emiago/sipgo/sip"

	"trunkline/internal/panics"
)

// preparser parses messages before the stack does, on a goroutine that can recover a panic: the stack
// parses streams, and looks up the transaction of each message, on its own goroutines.
type preparser struct {
	panics  *panics.Recoverer
	metrics *metrics
	parser  *sipmsg.Parser

	mu             sync.Mutex
	partialStreams map[string]*streamPreparser // of connections that the stack has opened, by their two addresses
}

func newPreparser(p *panics.Recoverer, m *metrics) *preparser {
	return &preparser{panics: p, metrics: m, parser: sipmsg.NewParser(), partialStreams: map[string]*streamPreparser{}}
}

// checkDatagram reports whether the stack can handle a datagram.
func (p *preparser) checkDatagram(data []byte) bool {
	ok := false
	p.panics.Do(placeParse, func() {
		m, err := p.parser.ParseSIP(data)
		if err == nil {
			exerciseStack(m)
			ok = true
		}
	})

	if !ok {
		p.metrics.malformed.Inc()
	}

	return ok
}

// streamPreparser parses the bytes read from one connection.
type streamPreparser struct {
	preparser  *preparser
	parser     *sipmsg.ParserStream
	incomplete bool // the last message is incomplete
}

func (p *preparser) newStream() *streamPreparser {
	return &streamPreparser{preparser: p, parser: p.parser.NewSIPStream()}
}

// check reports whether the stack can handle the next bytes.
func (s *streamPreparser) check(data []byte) bool {
	if isPing(data) {
		return true
	}

	ok := false
	s.preparser.panics.Do(placeParse, func() {
		err := s.parser.ParseSIPStream(data, exerciseStack)
		s.incomplete = err == sipmsg.ErrParseSipPartial
		ok = err == nil || s.incomplete
	})

	if !ok {
		s.preparser.metrics.malformed.Inc()
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
func (p *preparser) checkOutbound(local, remote string, data []byte) error {
	key := local + " " + remote
	p.mu.Lock()
	s := p.partialStreams[key]
	delete(p.partialStreams, key)
	p.mu.Unlock()

	if s == nil {
		s = p.newStream()
	}
	if !s.check(data) {
		return errMalformedStream
	}
	if !s.incomplete {
		return nil
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	if len(p.partialStreams) >= maxPartialStreams {
		clear(p.partialStreams) // mostly of connections that have ended
	}

	p.partialStreams[key] = s
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
