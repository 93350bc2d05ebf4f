package baseline

import (
	"context"
	"net"
	"slices"
	"sync"
)

const (
	maxQueuedFrames = 4096     // frames that wait in a socketWriter before Send blocks
	maxWriteBytes   = 64 << 10 // bytes of one coalesced write, as in fanout
)

// socketWriter writes to its share of the sockets.
type socketWriter struct {
	coalesce bool
	frames   chan frame     // from Send; the queue, of at most maxQueuedFrames
	gathered map[int][]byte // by stream: what gather writes at once; of run alone

	mu      sync.Mutex
	closed  bool
	sockets map[int][]net.Conn // by stream; a list is only ever appended to, or replaced
}

// frame is a WebSocket frame, or several, for the sockets of a stream.
type frame struct {
	stream int
	bytes  []byte
}

func newSocketWriter(coalesce bool) *socketWriter {
	return &socketWriter{coalesce: coalesce, frames: make(chan frame, maxQueuedFrames), gathered: map[int][]byte{},
		sockets: map[int][]net.Conn{}}
}

func (w *socketWriter) add(stream int, socket net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		_ = socket.Close()
		return
	}
	w.sockets[stream] = append(w.sockets[stream], socket)
}

// closeAll closes the sockets, which also ends blocked writes.
func (w *socketWriter) closeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, sockets := range w.sockets {
		for _, socket := range sockets {
			_ = socket.Close()
		}
	}
}

// remove forgets sockets whose write failed.
func (w *socketWriter) remove(stream int, failed []net.Conn) {
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

func (w *socketWriter) run(ctx context.Context) {
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
func (w *socketWriter) gather(f frame) {
	for ; ; f = <-w.frames {
		w.gathered[f.stream] = append(w.gathered[f.stream], f.bytes...)
		if len(w.gathered[f.stream]) >= maxWriteBytes || len(w.frames) == 0 {
			break
		}
	}

	for stream, bytes := range w.gathered {
		if len(bytes) > 0 {
			w.write(frame{stream: stream, bytes: bytes})
			w.gathered[stream] = bytes[:0]
		}
	}
}

func (w *socketWriter) write(f frame) {
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
