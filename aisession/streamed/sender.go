package streamed

import (
	"slices"
	"sync"
)

// Sender writes frames to a connection in order. Put and PutControl never block.
type Sender struct {
	write      func(frame []byte) error
	wake       chan struct{} // has an element if frames may have been queued since the writer found none
	free       chan []byte   // written frames, whose memory Buffer reuses
	closing    chan struct{} // closed by Close
	writerDone chan struct{} // closed when the writer has ended
	closeOnce  sync.Once

	mu    sync.Mutex
	queue []queuedFrame
}

// queuedFrame is a frame that waits for the writer.
type queuedFrame struct {
	frame   []byte
	isAudio bool
}

const (
	maxQueuedFrames   = 50      // one second of frames of 20 ms
	maxQueuedMessages = 1 << 10 // with those that are no audio: more than a session sends in a write's time
	maxFreeBuffers    = 4
)

// NewSender starts the writer. After write returns an error, nothing more is written and failed is
// called once.
func NewSender(write func(frame []byte) error, failed func()) *Sender {
	s := &Sender{
		write: write, wake: make(chan struct{}, 1), free: make(chan []byte, maxFreeBuffers),
		closing: make(chan struct{}), writerDone: make(chan struct{}),
	}
	go s.run(failed)
	return s
}

func (s *Sender) run(failed func()) {
	defer close(s.writerDone)

	for {
		select {
		case <-s.closing:
			return
		default:
		}

		frame, ok := s.take()
		if !ok {
			select {
			case <-s.closing:
				return
			case <-s.wake:
			}
			continue
		}

		if s.write(frame) != nil {
			failed()
			return
		}

		select {
		case s.free <- frame:
		default:
		}
	}
}

// take removes and returns the oldest frame.
func (s *Sender) take() (frame []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return nil, false
	}
	frame = s.queue[0].frame
	s.queue = slices.Delete(s.queue, 0, 1)
	return frame, true
}

// queued returns the number of frames that wait.
func (s *Sender) queued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

// Buffer returns memory for a frame to be put.
func (s *Sender) Buffer() []byte {
	select {
	case b := <-s.free:
		return b[:0]
	default:
		return nil
	}
}

// Put queues a frame of audio and takes ownership of it. It is for one goroutine at a time.
func (s *Sender) Put(frame []byte) { s.enqueue(queuedFrame{frame: frame, isAudio: true}) }

// PutControl queues a frame that is not audio, which is not dropped to make room for audio. It is otherwise as Put.
func (s *Sender) PutControl(frame []byte) { s.enqueue(queuedFrame{frame: frame}) }

func (s *Sender) enqueue(f queuedFrame) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if len(s.queue) >= maxQueuedFrames {
		oldest := slices.IndexFunc(s.queue, func(q queuedFrame) bool { return q.isAudio })
		switch {
		case oldest >= 0:
			s.queue = slices.Delete(s.queue, oldest, oldest+1)
		case f.isAudio:
			return
		case len(s.queue) == maxQueuedMessages:
			s.queue = slices.Delete(s.queue, 0, 1)
		}
	}

	s.queue = append(s.queue, f)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Close ends the writer and waits for it. Queued frames are not written.
func (s *Sender) Close() {
	s.closeOnce.Do(func() { close(s.closing) })
	<-s.writerDone
}
