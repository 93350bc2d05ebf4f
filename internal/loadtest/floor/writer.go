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
	frames   chan []byte

	mu      sync.Mutex
	over    bool
	sockets []net.Conn // only ever appended to, or replaced
}

func newWriter(coalesce bool) *writer {
	return &writer{coalesce: coalesce, frames: make(chan []byte, maxWaiting)}
}

func (w *writer) add(socket net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		_ = socket.Close()
		return
	}
	w.sockets = append(w.sockets, socket)
}

// closeAll ends the sockets, and with them a write that waits.
func (w *writer) closeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	for _, socket := range w.sockets {
		_ = socket.Close()
	}
}

func (w *writer) remove(gone []net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := make([]net.Conn, 0, len(w.sockets))
	for _, socket := range w.sockets {
		if !slices.Contains(gone, socket) {
			left = append(left, socket)
		}
	}
	w.sockets = left
}

func (w *writer) run(ctx context.Context) {
	var memory []byte
	for {
		select {
		case <-ctx.Done():
			return
		case frame := <-w.frames:
			if w.coalesce {
				memory = w.gather(append(memory[:0], frame...))
				frame = memory
			}
			w.write(frame)
		}
	}
}

// gather adds what waits.
func (w *writer) gather(b []byte) []byte {
	for len(b) < maxWrite {
		select {
		case frame := <-w.frames:
			b = append(b, frame...)
		default:
			return b
		}
	}
	return b
}

func (w *writer) write(b []byte) {
	w.mu.Lock()
	sockets := w.sockets
	w.mu.Unlock()
	var gone []net.Conn
	for _, socket := range sockets {
		if _, err := socket.Write(b); err != nil {
			_ = socket.Close()
			gone = append(gone, socket)
		}
	}
	if len(gone) > 0 {
		w.remove(gone)
	}
}
