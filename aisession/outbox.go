package aisession

import "sync"

// outbox is what waits for the next tick to be written to a provider: it never
// makes who puts wait. Audio beyond maxMedia pushes out the oldest audio.
type outbox struct {
	mu    sync.Mutex
	queue []frame
	free  [][]byte
	media int // frames of audio in queue
	ended bool
}

// frame is one WebSocket frame, ready to be written.
type frame struct {
	memory []byte
	from   int // where the frame begins in memory
	audio  bool
	last   bool // nothing follows
}

func (f frame) bytes() []byte { return f.memory[f.from:] }

const (
	maxMedia = 100 // frames: 2 s
	maxOther = 256 // frames that are no audio
)

func newOutbox() *outbox { return &outbox{} }

// begin gives memory for a frame that will be put.
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

// put queues a frame; dropped is how many frames had to go for it, itself or
// older ones.
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

// end lets nothing more in, and says whether it was open until now.
func (o *outbox) end() (first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	first, o.ended = !o.ended, true
	return first
}

// next takes the frame to write now; false when none waits.
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

// done gives a written frame's memory back.
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
