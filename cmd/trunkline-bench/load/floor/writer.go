package floor

import (
	"context"
	"net"
	"slices"
	"sync"
)

const (
	maxQueuedFrames = 4096     // frames queued for a writer before Send blocks
	maxWriteBytes   = 64 << 10 // bytes of one coalesced write, as in fanout
)

// writer writes to its part of the sockets.
type writer struct {
	coalesce bool
	frames   chan frame
	queued   map[int][]byte // by stream: frames queued for one write

	mu      sync.Mutex
	closed  bool
	sockets map[int][]net.Conn // by stream; a list is only ever appended to, or replaced
}

type frame struct {
	stream int
	bytes  []byte
}

func newWriter(coalesce bool) *writer {
	return &writer{coalesce: coalesce, frames: make(chan frame, maxQueuedFrames), queued: map[int][]byte{},
		sockets: map[int][]net.Conn{}}
}

func (w *writer) add(stream int, socket net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		_ = socket.Close()
		return
	}
	w.sockets[stream] = append(w.sockets[stream], socket)
}

// closeAll closes the sockets, which also ends blocked writes.
func (w *writer) closeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, sockets := range w.sockets {
		for _, socket := range sockets {
			_ = socket.Close()
		}
	}
}

func (w *writer) remove(stream int, failed []net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	remaining := make([]net.Conn, 0, len(w.sockets[stream]))
	for _, socket := range w.sockets[stream] {
		if !slices.Contains(failed, socket) {
			remaining = append(remaining, socket)
		}
	}
	w.sockets[stream] = remaining
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
		w.queued[f.stream] = append(w.queued[f.stream], f.bytes...)
		if len(w.queued[f.stream]) >= maxWriteBytes || len(w.frames) == 0 {
			break
		}
	}

	for stream, bytes := range w.queued {
		if len(bytes) > 0 {
			w.write(frame{stream: stream, bytes: bytes})
			w.queued[stream] = bytes[:0]
		}
	}
}

func (w *writer) write(f frame) {
	w.mu.Lock()
	sockets := w.sockets[f.stream]
	w.mu.Unlock()

	var failed []net.Conn
	for _, socket := range sockets {
		_, err := socket.Write(f.bytes)
		if err != nil {
			_ = socket.Close()
			failed = append(failed, socket)
		}
	}

	if len(failed) > 0 {
		w.remove(f.stream, failed)
	}
}
