package floor

import (
	"context"
	"net"
	"slices"
)

const (
	maxWaiting = 4096     // frames that wait for a writer, then Send waits
	maxWrite   = 64 << 10 // of one coalesced write: as much as fanout's
)

// writer writes to its share of the sockets.
type writer struct {
	coalesce bool
	frames   chan []byte
	sockets  chan net.Conn
}

func newWriter(coalesce bool) *writer {
	return &writer{coalesce: coalesce, frames: make(chan []byte, maxWaiting), sockets: make(chan net.Conn)}
}

func (w *writer) add(ctx context.Context, socket net.Conn) {
	select {
	case w.sockets <- socket:
	case <-ctx.Done():
		_ = socket.Close()
	}
}

func (w *writer) run(ctx context.Context) {
	var sockets []net.Conn
	defer func() {
		for _, socket := range sockets {
			_ = socket.Close()
		}
	}()
	// A write that waits for a client must not outlive ctx: run ends it from
	// outside by closing the socket under it.
	var memory []byte
	for {
		select {
		case <-ctx.Done():
			return
		case socket := <-w.sockets:
			sockets = append(sockets, socket)
		case frame := <-w.frames:
			if w.coalesce {
				memory = w.gather(append(memory[:0], frame...))
				frame = memory
			}
			sockets = slices.DeleteFunc(sockets, func(socket net.Conn) bool { return !write(ctx, socket, frame) })
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

// write says false when the socket is no good any more.
func write(ctx context.Context, socket net.Conn, b []byte) bool {
	if ctx.Err() != nil {
		return true // run closes it
	}
	if _, err := socket.Write(b); err != nil {
		_ = socket.Close()
		return false
	}
	return true
}
