package fanout

import (
	"bytes"
	"cmp"
	"net/http"
	"strconv"
	"time"

	"trunkline/internal/fault"
)

// streamOutlet carries frames as server-sent events, for clients whose way
// breaks WebSockets. The request's own goroutine writes: each event has an id of
// its own (the cursor), so there is no frame to share.
type streamOutlet struct {
	http *http.ResponseController
	work chan struct{} // something waits
	over chan struct{} // closed by shut

	writing time.Time // since when a write is under way; guarded by the subscriber's lock
}

// Stream subscribes the request to server-sent events and serves it until it
// ends. An error is returned before anything was written.
func (f *Fanout) Stream(w http.ResponseWriter, req Request) error {
	err := f.stream(w, req)
	f.refused(err)
	return err
}

func (f *Fanout) stream(w http.ResponseWriter, req Request) error {
	s, err := f.openStream(w, req)
	if err == nil {
		s.outlet.(*streamOutlet).serve(f, s.subscriber, w, req.HTTP)
	}
	return err
}

// openStream admits the request and sends the response header.
func (f *Fanout) openStream(w http.ResponseWriter, req Request) (*admission, error) {
	f.upgrades.Add(1)
	defer f.upgrades.Add(-1)
	// EventSource reconnects by itself, to the same URL: what it has seen since
	// is in the header.
	since := cmp.Or(req.HTTP.Header.Get("Last-Event-ID"), req.HTTP.URL.Query().Get("since"))
	s, err := f.admit(req, since, true)
	if err != nil {
		return nil, err
	}
	o := &streamOutlet{http: http.NewResponseController(w), work: make(chan struct{}, 1), over: make(chan struct{})}
	s.outlet = o
	f.enter(s)
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	_ = o.http.SetReadDeadline(time.Time{})
	if err := o.http.Flush(); err != nil {
		f.remove(s.subscriber, codeAbnormal)
		return nil, fault.Internal(err, "the connection cannot stream")
	}
	f.metrics.opened.WithLabelValues(transportStream).Inc()
	f.open(s)
	return s, nil
}

// serve writes what waits until the client or the subscriber has gone.
func (o *streamOutlet) serve(f *Fanout, s *subscriber, w http.ResponseWriter, r *http.Request) {
	var scratch []byte
	for {
		select {
		case <-o.work:
		case <-o.over:
			return
		case <-r.Context().Done():
			f.remove(s, codeAbnormal)
			return
		}
		if scratch == nil {
			scratch = make([]byte, 0, streamBytes)
		}
		if !o.send(s, w, scratch) {
			f.remove(s, codeAbnormal)
			return
		}
	}
}

const (
	streamBytes = 16 << 10
	streamWait  = 60 * time.Second // a client that takes nothing for so long is gone
)

// send writes until nothing waits. It is false when the connection is done.
func (o *streamOutlet) send(s *subscriber, w http.ResponseWriter, scratch []byte) bool {
	for {
		s.mu.Lock()
		if s.state == closed {
			s.mu.Unlock()
			return false
		}
		s.conclude()
		if s.queue.empty() {
			s.state = idle
			said := s.end != nil
			s.mu.Unlock()
			return !said
		}
		waiting := s.queue.gather(scratch, streamBytes)
		o.writing = time.Now()
		s.mu.Unlock()
		_ = o.http.SetWriteDeadline(time.Now().Add(streamWait))
		n, err := w.Write(waiting)
		if err == nil {
			err = o.http.Flush()
		}
		s.mu.Lock()
		o.writing = time.Time{}
		if s.state != closed {
			s.advanced(n)
		}
		s.mu.Unlock()
		if err != nil {
			return false
		}
	}
}

func (o *streamOutlet) flush(*subscriber, []byte) {
	select {
	case o.work <- struct{}{}:
	default:
	}
}

// event is "id:" with the cursor after the event, and "data:" with the
// message. A message with line breaks takes one data line each, which the
// client joins again.
func (o *streamOutlet) event(m *frame, at *cursorTracker) *frame {
	wire := append([]byte("id: "), at.cursor()...)
	for line := range bytes.Lines(m.payload()) {
		wire = append(wire, "\ndata: "...)
		wire = append(wire, bytes.TrimRight(line, "\r\n")...)
	}
	wire = append(wire, "\n\n"...)
	return &frame{wire: wire, part: m.part, id: m.id, offset: m.offset, source: m.source}
}

func (o *streamOutlet) cursor(string) *frame { return nil }

var commentFrame = &frame{wire: []byte(":\n\n"), control: true}

func (o *streamOutlet) ping() *frame { return commentFrame }

func (o *streamOutlet) answers() bool { return false }

func (o *streamOutlet) farewell(code int, reason string) *frame {
	wire := append([]byte(": "), strconv.Itoa(code)...)
	wire = append(append(append(wire, ' '), reason...), "\n\n"...)
	return &frame{wire: wire, control: true}
}

// A write that takes so long is waiting for the client, not for us.
const stuckAfter = 50 * time.Millisecond

func (o *streamOutlet) stuck(*subscriber) bool {
	return !o.writing.IsZero() && time.Since(o.writing) > stuckAfter
}

func (o *streamOutlet) shut() {
	_ = o.http.SetWriteDeadline(time.Unix(1, 0))
	close(o.over)
}
