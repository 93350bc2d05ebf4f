package drivertest

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// ScriptedPlatform is a platform without its protocol, which sends the events of the calls that a driver places. Mu
// guards all fields that are set after Start.
type ScriptedPlatform struct {
	Pause     time.Duration // before each event
	Split     bool          // writes a few bytes at a time
	Hold      string        // event at whose first occurrence calls wait for Release
	Cut       string        // event within which the connection breaks, once
	DropOrder bool          // closes the connection instead of responding to an order, once
	Refuse    string        // response to orders; "" accepts them

	T       *testing.T
	Address string

	Mu             sync.Mutex
	Client         net.Conn // the logged-in client; nil if none
	Denied         int      // logins
	Killed         []string // channels
	CountChannels  func() int
	ForgetChannels func()

	cond   *sync.Cond
	done   sync.WaitGroup
	calls  map[string]*playedCall
	closed bool
}

type playedCall struct{ killed, released bool }

// Start serves connections, one at a time, until the end of the test.
func (p *ScriptedPlatform) Start(t *testing.T, converse func(net.Conn)) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	p.T, p.Address, p.cond, p.calls = t, l.Addr().String(), sync.NewCond(&p.Mu), make(map[string]*playedCall)
	p.done.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}

			converse(client)
			client.Close()

			p.Mu.Lock()
			if p.Client == client {
				p.Client = nil
			}
			p.Mu.Unlock()
		}
	})

	t.Cleanup(func() {
		p.Mu.Lock()
		p.closed = true
		p.cond.Broadcast()
		if p.Client != nil {
			p.Client.Close()
		}
		p.Mu.Unlock()

		l.Close()
		p.done.Wait()
	})
}

// Write writes to a connection. Mu is held, except before the login, so that no two messages mix.
func (p *ScriptedPlatform) Write(client net.Conn, text string) {
	if !p.Split {
		io.WriteString(client, text)
		return
	}
	for len(text) > 0 {
		n := min(1+rand.IntN(40), len(text))
		io.WriteString(client, text[:n])
		text = text[n:]
	}
}

// Send sends an event to the client, if there is one. Mu is held.
func (p *ScriptedPlatform) Send(name, text string) {
	if p.Client == nil {
		return
	}

	if name != "" && name == p.Cut {
		p.Cut = ""
		io.WriteString(p.Client, text[:len(text)/2])
		p.Client.Close()
		p.Client = nil
		return
	}

	p.Write(p.Client, text)
}

// Play sends a call's events with send, each under its name. After Kill it stops and calls end. The
// caller holds Mu, and it is held in send and end.
func Play[E any](p *ScriptedPlatform, key string, events []E, name func(E) string, send func(E), end func()) {
	call := &playedCall{}
	p.calls[key] = call
	p.done.Go(func() {
		p.Mu.Lock()
		defer p.Mu.Unlock()

		held := false
		for _, e := range events {
			if name(e) == p.Hold && !held {
				held = true
				for !call.killed && !call.released && !p.closed {
					p.cond.Wait()
				}
			}

			if call.killed || p.closed {
				break
			}

			send(e)

			p.Mu.Unlock()
			time.Sleep(p.Pause)
			p.Mu.Lock()
		}

		if call.killed && !p.closed {
			end()
		}
	})
}

// Kill records that a channel of a call was hung up, and reports whether there is such a call. Mu is
// held.
func (p *ScriptedPlatform) Kill(key, channel string) bool {
	call := p.calls[key]
	if call == nil {
		return false
	}
	p.Killed = append(p.Killed, channel)
	call.killed = true
	p.cond.Broadcast()
	return true
}

// Release lets the calls that wait continue.
func (p *ScriptedPlatform) Release() {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	for _, call := range p.calls {
		call.released = true
	}
	p.cond.Broadcast()
}

// Await waits for a condition of the platform, which is evaluated with Mu held.
func (p *ScriptedPlatform) Await(what string, holds func() bool) {
	p.T.Helper()
	Until(p.T, what, func() bool {
		p.Mu.Lock()
		defer p.Mu.Unlock()
		return holds()
	})
}
