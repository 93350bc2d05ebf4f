package rtp

import (
	"log/slog"
	"runtime"
	"slices"
	"sync"
)

// portsPerLoop is from how many sockets on a loop is given company, as long as
// there are processors for it: at fifty packets a second each, it is then busy
// for a quarter of its time.
const portsPerLoop = 512

// readers are the loops. There are none while no port is open.
type readers struct {
	log *slog.Logger

	mu    sync.Mutex
	loops []*loop
}

// add has a port read.
func (r *readers) add(p *Port) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var least *loop
	for _, l := range r.loops {
		if least == nil || l.size() < least.size() {
			least = l
		}
	}
	if least == nil || least.size() >= portsPerLoop && len(r.loops) < runtime.GOMAXPROCS(0) {
		l, err := startLoop(r.log)
		if err != nil {
			return err
		}
		least, r.loops = l, append(r.loops, l)
	}
	if err := least.add(p); err != nil {
		r.endIfEmpty(least)
		return err
	}
	p.socket.loop = least
	return nil
}

// remove closes a port's socket. When it returns, no packet of the port is
// handed on any more.
func (r *readers) remove(p *Port) error {
	r.mu.Lock()
	l := p.socket.loop
	l.drop(p)
	r.mu.Unlock()
	err := p.shut()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endIfEmpty(l)
	return err
}

// endIfEmpty ends a loop that has no port; mu is held.
func (r *readers) endIfEmpty(l *loop) {
	if i := slices.Index(r.loops, l); i >= 0 && l.size() == 0 {
		r.loops = slices.Delete(r.loops, i, i+1)
		l.stop()
	}
}
