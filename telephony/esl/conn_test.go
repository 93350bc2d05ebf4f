package esl

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"trunkline/telephony/eventconn/conntest"
)

func TestConnSaysWhyItEnded(t *testing.T) {
	for name, test := range map[string]struct {
		play func(*peer)
		want error
	}{
		"goodbye": {func(p *peer) {
			p.Writef(
				"Content-Type: text/disconnect-notice\nContent-Length: 4\n\nbye\n")
		}, ErrDisconnect},
		"closed":             {func(p *peer) {}, io.EOF},
		"closed in a header": {func(p *peer) { p.Writef("Content-Length: 12\nConte") }, io.ErrUnexpectedEOF},
		"closed in a body": {func(p *peer) { p.Writef("Content-Type: api/response\nContent-Length: 12\n\nhal") },
			io.ErrUnexpectedEOF},
		"garbage": {func(p *peer) { p.Writef("\x00\xff\xfe garbage\n\n") }, ErrMalformed},
		"endless line": {func(p *peer) { p.Writef("%s", strings.Repeat("x", 1<<20)); p.WaitClosed() },
			ErrTooLarge},
		"endless headers": {func(p *peer) { p.Writef("%s", strings.Repeat("a: b\n", 1<<16)); p.WaitClosed() },
			ErrTooLarge},
		"endless blank lines": {func(p *peer) { p.Writef("%s", strings.Repeat("\n", 1<<20)); p.WaitClosed() },
			ErrTooLarge},
		"huge body": {func(p *peer) {
			p.Writef(
				"Content-Type: api/response\nContent-Length: 99999999\n\n")
			p.WaitClosed()
		}, ErrTooLarge},
		"length overflows": {func(p *peer) {
			p.Writef(
				"Content-Type: api/response\nContent-Length: 99999999999999999999999\n\n")
		}, ErrTooLarge},
		"negative length": {func(p *peer) { p.Writef("Content-Type: api/response\nContent-Length: -1\n\n") },
			ErrMalformed},
		"no content type": {func(p *peer) { p.Writef("Content-Length: 1\n\nx") }, ErrMalformed},
		"unknown content type": {func(p *peer) { p.Writef("Content-Type: text/event-xml\nContent-Length: 1\n\nx") },
			ErrMalformed},
		"reply to nothing":     {func(p *peer) { p.reply("+OK") }, ErrMalformed},
		"event without a name": {func(p *peer) { p.sendEvent("Core-UUID: 1\n\n") }, ErrMalformed},
		"event that is not JSON": {func(p *peer) {
			p.Writef(
				"Content-Type: text/event-json\nContent-Length: 5\n\n{\"a\":")
		}, ErrMalformed},
		"event body too long": {func(p *peer) { p.sendEvent("Event-Name: X\nContent-Length: 9\n\nshort") },
			ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			address := serve(t, func(p *peer) {
				if p.login() {
					test.play(p)
				}
			})

			c := dialClient(t, Config{Address: address, MaxMessage: 64 << 10})
			if err := conntest.WaitEnd(t, c.Conn); !errors.Is(err, test.want) {
				t.Fatalf("got %v, want %v", err, test.want)
			}
			if _, err := c.API(t.Context(), "status"); !errors.Is(err, test.want) {
				t.Fatalf("a command after the end: %v", err)
			}
		})
	}
}

func TestSlowConsumerLosesTheConnectionNotTheMemory(t *testing.T) {
	address := serve(t, func(p *peer) {
		p.login()
		for i := range 1000 {
			p.sendEvent(fmt.Sprintf("Event-Name: X\nEvent-Sequence: %d\n\n", i))
		}
		p.WaitClosed()
	})

	c := dialClient(t, Config{Address: address, QueueEvents: 100})
	if err := conntest.WaitEnd(t, c.Conn); !errors.Is(err, ErrQueueFull) {
		t.Fatalf("got %v", err)
	}

	events := c.Take()
	if len(events) != 100 {
		t.Fatalf("%d events are held", len(events))
	}

	for i, e := range events {
		if n, _ := e.Sequence(); n != uint64(i) {
			t.Fatalf("event %d is number %d", i, n)
		}
	}
}
