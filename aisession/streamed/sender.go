package streamed

import "sync"

// Sender writes frames to a connection, one after another. Put never waits for it.
type Sender struct {
	write func(frame []byte) error
	queue chan []byte
	free  chan []byte
	over  chan struct{} // closed by Close
	ended chan struct{} // the writer has
	once  sync.Once
}

const (
	maxFrames = 50 // a second
	maxFree   = 4
)

// NewSender starts to write. After an error of write nothing more is written,
// and failed is called once.
func NewSender(write func(frame []byte) error, failed func()) *Sender {
	o := &Sender{
		write: write, queue: make(chan []byte, maxFrames), free: make(chan []byte, maxFree),
		over: make(chan struct{}), ended: make(chan struct{}),
	}
	go o.run(failed)
	return o
}

func (o *Sender) run(failed func()) {
	defer close(o.ended)
	for {
		select {
		case <-o.over:
			return
		case frame := <-o.queue:
			if o.write(frame) != nil {
				failed()
				return
			}
			select {
			case o.free <- frame:
			default:
			}
		}
	}
}

// Begin gives memory for a frame that will be put.
func (o *Sender) Begin() []byte {
	select {
	case b := <-o.free:
		return b[:0]
	default:
		return nil
	}
}

// Put queues a frame, which belongs to the sender from now on. It is called by one
// goroutine at a time.
func (o *Sender) Put(frame []byte) {
	for {
		select {
		case o.queue <- frame:
			return
		default:
		}
		select {
		case <-o.queue: // the oldest
		default:
		}
	}
}

// Close ends the writer and waits for it. What waits is not written.
func (o *Sender) Close() {
	o.once.Do(func() { close(o.over) })
	<-o.ended
}
