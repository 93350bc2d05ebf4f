package floor

import (
	"context"
	"net"
	"slices"
	"sync"
)

const (
	maxWaiting = 4096     // frames that wait for a writer, then Send waits
	maxWrite   = 64 << 10 // of one coalesced write: as much as fanout's
)

// writer writes to its share of the sockets.
type writer struct {
	coalesce bool
	frames   chan frame
	waiting  map[int][]byte // a stream's frames that are to leave in one write

	mu      sync.Mutex
	over    bool
	sockets map[int][]net.Conn // of a stream; a list is only ever appended to, or replaced
}

type frame struct {
	stream int
	bytes  []byte
}

func newWriter(coalesce bool) *writer {
	return &writer{coalesce: coalesce, frames: make(chan frame, maxWaiting), waiting: map[int][]byte{}, sockets: map[int][]net.Conn{}}
}

func (w *writer) add(stream int, socket net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		_ = socket.Close()
		return
	}
	w.sockets[stream] = append(w.sockets[stream], socket)
}

// closeAll ends the sockets, and with them a write that waits.
func (w *writer) closeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	for _, sockets := range w.sockets {
		for _, socket := range sockets {
			_ = socket.Close()
		}
	}
}

func (w *writer) remove(stream int, gone []net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := make([]net.Conn, 0, len(w.sockets[stream]))
	for _, socket := range w.sockets[stream] {
		if !slices.Contains(gone, socket) {
			left = append(left, socket)
		}
	}
	w.sockets[stream] = left
}

func (w *writer) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case f := <-w.frames:
			if w.coalesce {
				w.gather(f)
			} else {
				w.write(f)
			}
		}
	}
}

// gather writes a frame together with what waits.
func (w *writer) gather(f frame) {
	for ; ; f = <-w.frames {
		w.waiting[f.stream] = append(w.waiting[f.stream], f.bytes...)
		if len(w.waiting[f.stream]) >= maxWrite || len(w.frames) == 0 {
			break
		}
	}
	for stream, bytes := range w.waiting {
		if len(bytes) > 0 {
			w.write(frame{stream: stream, bytes: bytes})
			w.waiting[stream] = bytes[:0]
		}
	}
}

func (w *writer) write(f frame) {
	w.mu.Lock()
	sockets := w.sockets[f.stream]
	w.mu.Unlock()
	var gone []net.Conn
	for _, socket := range sockets {
		if _, err := socket.Write(f.bytes); err != nil {
			_ = socket.Close()
			gone = append(gone, socket)
		}
	}
	if len(gone) > 0 {
		w.remove(f.stream, gone)
	}
}
