package streamed

import "sync"

// Sender writes frames to a connection in order. Put never blocks.
type Sender struct {
	write      func(frame []byte) error
	queue      chan []byte
	free       chan []byte
	closing    chan struct{} // closed by Close
	writerDone chan struct{} // closed when the writer has ended
	once       sync.Once
}

const (
	maxFrames = 50 // one second of frames of 20 ms
	maxFree   = 4
)

// NewSender starts the writer. After write returns an error, nothing more is written and failed is
// called once.
func NewSender(write func(frame []byte) error, failed func()) *Sender {
	o := &Sender{
		write: write, queue: make(chan []byte, maxFrames), free: make(chan []byte, maxFree),
		closing: make(chan struct{}), writerDone: make(chan struct{}),
	}
	go o.run(failed)
	return o
}

func (s *Sender) run(failed func()) {
	defer close(s.writerDone)

	for {
		select {
		case <-s.closing:
			return
		case frame := <-s.queue:
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

// Put queues a frame and takes ownership of it. It is for one goroutine at a time.
func (s *Sender) Put(frame []byte) {
	for {
		select {
		case s.queue <- frame:
			return
		default:
		}

		select {
		case <-s.queue: // drop the oldest
		default:
		}
	}
}

// Close ends the writer and waits for it. Queued frames are not written.
func (s *Sender) Close() {
	s.once.Do(func() { close(s.closing) })
	<-s.writerDone
}
