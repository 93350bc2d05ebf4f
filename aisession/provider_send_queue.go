package aisession

import "sync"

// sendQueue is the queue of frames that the next tick writes to a provider. Adding never blocks. Audio
// above maxAudioFrames drops the oldest audio.
type sendQueue struct {
	mu          sync.Mutex
	queue       []frame
	free        [][]byte // buffers for new frames
	audioFrames int      // audio frames in queue
	closed      bool     // the close frame is queued, or the connection lost
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
func (q *sendQueue) getBuffer() []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.free)
	if n > 0 {
		b := q.free[n-1]
		q.free = q.free[:n-1]
		return b
	}
	return make([]byte, 0, 512)
}

// enqueue queues a frame and returns the number of frames dropped, counting f itself if it is rejected.
func (q *sendQueue) enqueue(f frame) (dropped int) {
	q.mu.Lock()
	defer q.mu.Unlock()

	switch {
	case q.closed, !f.isAudio && !f.isClose && len(q.queue)-q.audioFrames >= maxControlFrames:
		q.recycleLocked(f)
		dropped = 1
	default:
		if f.isAudio && q.audioFrames == maxAudioFrames {
			q.dropOldest()
			dropped = 1
		}

		q.queue = append(q.queue, f)
		if f.isAudio {
			q.audioFrames++
		}

		q.closed = f.isClose
	}

	return dropped
}

func (q *sendQueue) dropOldest() {
	for i, f := range q.queue {
		if f.isAudio {
			q.queue = append(q.queue[:i], q.queue[i+1:]...)
			q.audioFrames--
			q.recycleLocked(f)
			return
		}
	}
}

// close makes the queue reject further frames and reports whether it accepted them before.
func (q *sendQueue) close() (first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	first, q.closed = !q.closed, true
	return first
}

// pop returns the frame to write; false if the queue is empty.
func (q *sendQueue) pop() (frame, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()

	if len(q.queue) == 0 {
		return frame{}, false
	}

	f := q.queue[0]
	q.queue = append(q.queue[:0], q.queue[1:]...)
	if f.isAudio {
		q.audioFrames--
	}

	return f, true
}

// recycle reuses the memory of a written frame.
func (q *sendQueue) recycle(f frame) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.recycleLocked(f)
}

const maxFreeBuffers = 4

func (q *sendQueue) recycleLocked(f frame) {
	if len(q.free) < maxFreeBuffers {
		q.free = append(q.free, f.buffer)
	}
}
