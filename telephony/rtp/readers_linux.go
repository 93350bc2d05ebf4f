package rtp

import (
	"log/slog"
	"runtime"
	"slices"
	"sync"
)

// portsPerLoop is the number of sockets on a loop above which another loop is started, up to the
// number of processors. At fifty packets a second each, such a loop uses a quarter of a processor.
const portsPerLoop = 512

// readers is the set of loops. It is empty while no port is open.
type readers struct {
	log *slog.Logger

	mu    sync.Mutex
	loops []*epollLoop
}

// add starts reading a port.
func (r *readers) add(p *Port) error {
	r.mu.Lock()
	defer r.mu.Unlock()

	var least *epollLoop
	for _, l := range r.loops {
		if least == nil || l.size() < least.size() {
			least = l
		}
	}

	if least == nil || least.size() >= portsPerLoop && len(r.loops) < runtime.GOMAXPROCS(0) {
		l, err := startEpollLoop(r.log)
		if err != nil {
			return err
		}
		least, r.loops = l, append(r.loops, l)
	}

	if err := least.add(p); err != nil {
		r.stopIfEmpty(least)
		return err
	}

	p.socket.loop = least
	return nil
}

// remove closes a port's socket. When it returns, no further packet of the port is delivered.
func (r *readers) remove(p *Port) error {
	r.mu.Lock()
	l := p.socket.loop
	l.remove(p)
	r.mu.Unlock()

	// Without mu: closeSocket waits for the port's Receiver (see the lock order).
	err := p.closeSocket()

	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopIfEmpty(l)
	return err
}

// stopIfEmpty ends a loop without ports. The caller holds mu.
func (r *readers) stopIfEmpty(l *epollLoop) {
	i := slices.Index(r.loops, l)
	if i >= 0 && l.size() == 0 {
		r.loops = slices.Delete(r.loops, i, i+1)
		l.stop()
	}
}
