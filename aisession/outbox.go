package aisession

import "sync"

// outbox is the queue of frames that the next tick writes to a provider. Adding never blocks. Audio
// above maxMedia frames drops the oldest audio.
type outbox struct {
	mu    sync.Mutex
	queue []frame
	free  [][]byte
	media int // audio frames in queue
	ended bool
}

// frame is one encoded WebSocket frame.
type frame struct {
	memory []byte
	from   int // start of the frame in memory
	audio  bool
	last   bool // the close frame
}

func (f frame) bytes() []byte { return f.memory[f.from:] }

const (
	maxMedia = 100 // frames: 2 s
	maxOther = 256 // frames other than audio
)

func newOutbox() *outbox { return &outbox{} }

// begin returns memory for a frame to be put.
func (o *outbox) begin() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n := len(o.free); n > 0 {
		b := o.free[n-1]
		o.free = o.free[:n-1]
		return b
	}
	return make([]byte, 0, 512)
}

// put queues a frame and returns how many frames were dropped for it, including itself.
func (o *outbox) put(f frame) (dropped int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.ended, !f.audio && !f.last && len(o.queue)-o.media >= maxOther:
		o.release(f)
		dropped = 1
	default:
		if f.audio && o.media == maxMedia {
			o.dropOldest()
			dropped = 1
		}
		o.queue = append(o.queue, f)
		if f.audio {
			o.media++
		}
		o.ended = f.last
	}
	return dropped
}

func (o *outbox) dropOldest() {
	for i, f := range o.queue {
		if f.audio {
			o.queue = append(o.queue[:i], o.queue[i+1:]...)
			o.media--
			o.release(f)
			return
		}
	}
}

// end makes the outbox reject further frames and reports whether it accepted them before.
func (o *outbox) end() (first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	first, o.ended = !o.ended, true
	return first
}

// next returns the frame to write; false if the queue is empty.
func (o *outbox) next() (frame, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 {
		return frame{}, false
	}
	f := o.queue[0]
	o.queue = append(o.queue[:0], o.queue[1:]...)
	if f.audio {
		o.media--
	}
	return f, true
}

// done reuses the memory of a written frame.
func (o *outbox) done(f frame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.release(f)
}

const maxFree = 4

func (o *outbox) release(f frame) {
	if len(o.free) < maxFree {
		o.free = append(o.free, f.memory)
	}
}
