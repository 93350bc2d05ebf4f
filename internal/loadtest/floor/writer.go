package floor

import (
	"context"
	"net"
	"slices"
	"sync"
)

const (
	maxWaiting = 4096     // frames queued for a writer before Send blocks
	maxWrite   = 64 << 10 // bytes of one coalesced write, as in fanout
)

// writer writes to its part of the sockets.
type writer struct {
	coalesce bool
	frames   chan frame
	waiting  map[int][]byte // by stream: frames queued for one write

	mu      sync.Mutex
	over    bool
	sockets map[int][]net.Conn // by stream; a list is only ever appended to, or replaced
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

// closeAll closes the sockets, which also ends blocked writes.
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

// gather writes a frame together with the queued ones.
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
