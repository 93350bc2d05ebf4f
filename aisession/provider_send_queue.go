package aisession

import "sync"

// outbox is the queue of frames that the next tick writes to a provider. Adding never blocks. Audio
// above maxAudioFrames drops the oldest audio.
type outbox struct {
	mu          sync.Mutex
	queue       []frame
	free        [][]byte
	audioFrames int // audio frames in queue
	closed      bool
}

// frame is one encoded WebSocket frame.
type frame struct {
	buffer  []byte
	start   int // start of the frame in buffer
	isAudio bool
	isClose bool // the close frame
}

func (f frame) bytes() []byte { return f.buffer[f.start:] }

const (
	maxAudioFrames   = 100 // frames: 2 s
	maxControlFrames = 256 // frames other than audio
)

// getBuffer returns memory for a frame to be put.
func (o *outbox) getBuffer() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(o.free)
	if n > 0 {
		b := o.free[n-1]
		o.free = o.free[:n-1]
		return b
	}
	return make([]byte, 0, 512)
}

// enqueue queues a frame and returns the number of frames dropped, counting f itself if it is rejected.
func (o *outbox) enqueue(f frame) (dropped int) {
	o.mu.Lock()
	defer o.mu.Unlock()

	switch {
	case o.closed, !f.isAudio && !f.isClose && len(o.queue)-o.audioFrames >= maxControlFrames:
		o.recycleLocked(f)
		dropped = 1
	default:
		if f.isAudio && o.audioFrames == maxAudioFrames {
			o.dropOldest()
			dropped = 1
		}

		o.queue = append(o.queue, f)
		if f.isAudio {
			o.audioFrames++
		}

		o.closed = f.isClose
	}

	return dropped
}

func (o *outbox) dropOldest() {
	for i, f := range o.queue {
		if f.isAudio {
			o.queue = append(o.queue[:i], o.queue[i+1:]...)
			o.audioFrames--
			o.recycleLocked(f)
			return
		}
	}
}

// close makes the outbox reject further frames and reports whether it accepted them before.
func (o *outbox) close() (first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	first, o.closed = !o.closed, true
	return first
}

// pop returns the frame to write; false if the queue is empty.
func (o *outbox) pop() (frame, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()

	if len(o.queue) == 0 {
		return frame{}, false
	}

	f := o.queue[0]
	o.queue = append(o.queue[:0], o.queue[1:]...)
	if f.isAudio {
		o.audioFrames--
	}

	return f, true
}

// recycle reuses the memory of a written frame.
func (o *outbox) recycle(f frame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.recycleLocked(f)
}

const maxFreeBuffers = 4

func (o *outbox) recycleLocked(f frame) {
	if len(o.free) < maxFreeBuffers {
		o.free = append(o.free, f.buffer)
	}
}
