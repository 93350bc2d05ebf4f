package fanout

import (
	"cmp"
	"net/http"
	"time"

	"trunkline/fanout/conn"
	"trunkline/internal/fault"
)

// eventStream sends frames as server-sent events, for clients behind proxies that
// block WebSockets. The goroutine of the request writes. Each event has its own id
// (the cursor), so subscribers do not share frames.
type eventStream struct {
	http *http.ResponseController
	work chan struct{} // signals that frames wait
	done chan struct{} // closed by close

	untilLive bool // the stream ends when all past events are sent
	complete  bool // they are; used by serve's goroutine

	writing time.Time // start of the current write; guarded by the subscriber's lock
}

// ServeEventStream subscribes the request to server-sent events and serves it
// until it ends. It writes nothing before it returns an error, but for the header
// of a connection that cannot stream or has broken.
func (f *Fanout) ServeEventStream(w http.ResponseWriter, req Request) error {
	s, err := f.openEventStream(w, req)
	if err != nil {
		f.countRefusal(err)
		return err
	}
	s.transport.(*eventStream).serve(f, s.subscriber, w, req.HTTP)
	return nil
}

// openEventStream admits the request and sends the response header.
func (f *Fanout) openEventStream(w http.ResponseWriter, req Request) (*admission, error) {
	f.handshakes.Add(1)
	defer f.handshakes.Add(-1)

	// EventSource reconnects automatically to the same URL and sends the last event id
	// in the header.
	since := cmp.Or(req.HTTP.Header.Get("Last-Event-ID"), req.HTTP.URL.Query().Get("since"))
	untilLive, err := endsWhenLive(req.HTTP, since)
	if err != nil {
		return nil, err
	}

	s, err := f.admit(req, since, true)
	if err != nil {
		return nil, err
	}

	t := &eventStream{http: http.NewResponseController(w), work: make(chan struct{}, 1), done: make(chan struct{}),
		untilLive: untilLive}
	s.transport = t

	if untilLive {
		s.onLive = func() { t.sendQueued(nil, nil) }
	}

	f.register(s)

	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no")

	if req.HTTP.ProtoMajor == 1 { // in HTTP/2 it would end the other streams of the connection
		header.Set("Connection", "close") // the write deadline remains set on the connection
	}

	w.WriteHeader(http.StatusOK)
	// The read timeout of the server would end the stream.
	_ = t.http.SetReadDeadline(time.Time{})
	if err := t.http.Flush(); err != nil {
		f.remove(s.subscriber, DisconnectBroken)
		return nil, fault.Internal(err, "the connection cannot stream")
	}

	f.metrics.opened.WithLabelValues(transportEventStream).Inc()
	f.startDelivery(s)
	return s, nil
}

// endsWhenLive reports whether the request asks for the past alone.
func endsWhenLive(r *http.Request, since string) (bool, error) {
	switch until := r.URL.Query().Get("until"); {
	case until == "":
		return false, nil
	case until != "now":
		return false, fault.InvalidField("until", "unsupported", "until must be now")
	case since == "":
		return false, fault.InvalidField("since", "required", "until needs since")
	}
	return true, nil
}

// serve writes queued frames until the client or the subscriber has disconnected.
func (t *eventStream) serve(f *Fanout, s *subscriber, w http.ResponseWriter, r *http.Request) {
	defer func() {
		<-t.done                                                  // close has interrupted a write in progress
		_ = t.http.SetWriteDeadline(time.Now().Add(closeTimeout)) // for the last chunk
	}()

	var scratch []byte
	for {
		select {
		case <-t.work:
		case <-t.done:
			return
		case <-r.Context().Done():
			f.remove(s, DisconnectBroken)
			return
		}

		if scratch == nil {
			scratch = make([]byte, 0, streamBytes)
		}
		if t.send(s, w, scratch) {
			continue
		}

		if t.complete {
			f.remove(s, DisconnectComplete)
		} else {
			f.remove(s, DisconnectBroken)
		}

		return
	}
}

const (
	streamBytes        = 16 << 10
	streamWriteTimeout = 60 * time.Second // a client that accepts no data for this long is disconnected
)

// send writes until the queue is empty. It returns false when the connection has
// ended.
func (t *eventStream) send(s *subscriber, w http.ResponseWriter, scratch []byte) bool {
	for {
		s.mu.Lock()
		if s.queueOwner == closed {
			s.mu.Unlock()
			return false
		}

		s.queueClosing()
		if s.queue.Empty() {
			s.queueOwner = unowned
			closeSent := s.closing != nil
			t.complete = !closeSent && t.untilLive && !s.replaying.Load()
			s.mu.Unlock()
			return !closeSent && !t.complete
		}

		waiting := s.queue.Gather(scratch, streamBytes)
		t.writing = time.Now()
		_ = t.http.SetWriteDeadline(t.writing.Add(streamWriteTimeout))
		s.mu.Unlock()

		n, err := w.Write(waiting)
		if err == nil {
			err = t.http.Flush()
		}

		s.mu.Lock()
		t.writing = time.Time{}
		// markClosed has emptied the queue meanwhile, if it was called.
		if s.queueOwner != closed {
			s.advanceQueue(n)
		}
		s.mu.Unlock()

		if err != nil {
			return false
		}
	}
}

func (t *eventStream) sendQueued(*subscriber, []byte) {
	select {
	case t.work <- struct{}{}:
	default:
	}
}

func (t *eventStream) message(m *frame, at *cursorTracker) *conn.Frame {
	return conn.NewServerSentEvent(m.ID, at.cursor(), m.Payload())
}

// cursor returns nil: events carry the cursor as their id.
func (t *eventStream) cursor(string) *conn.Frame { return nil }

func (t *eventStream) ping() *conn.Frame { return conn.Comment }

func (t *eventStream) answersPings() bool { return false }

func (t *eventStream) closing(d conn.Disconnect) *conn.Frame { return conn.NewCloseComment(d) }

// stuckAfter is the duration of a write after which the client counts as slow.
const stuckAfter = 50 * time.Millisecond

func (t *eventStream) stuck(*subscriber) bool {
	return !t.writing.IsZero() && time.Since(t.writing) > stuckAfter
}

// close interrupts a write that is under way; there will be no other one. In HTTP/2 a
// deadline in the past also resets the stream.
func (t *eventStream) close(s *subscriber) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !t.writing.IsZero() {
		_ = t.http.SetWriteDeadline(time.Unix(1, 0))
	}
	close(t.done)
}
