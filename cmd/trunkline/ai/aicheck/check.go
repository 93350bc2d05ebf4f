package aicheck

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"

	"trunkline/internal/aiprotocol"
	"trunkline/internal/aiprotocol/dialect"
)

// Timeouts and pauses of a check.
const (
	connectTimeout     = 10 * time.Second
	writeTimeout       = 10 * time.Second
	silenceBeforeStart = 300 * time.Millisecond // the provider must not send before start
	closeTimeout       = 5 * time.Second
)

// maxMessageBytes is the size of the largest message, in bytes, that Trunkline accepts.
const maxMessageBytes = 1 << 20

// session is the session under test.
type session struct {
	config   Config
	protocol dialect.Protocol
	dialect  dialect.Dialect
	conn     *websocket.Conn
	call     aiprotocol.Call

	started         atomic.Bool
	hangupRequested atomic.Bool              // by the provider (extension)
	ended           chan struct{}            // closed at the end of the connection
	received        received                 // owned by the reader until ended is closed
	replies         chan *aiprotocol.Message // to send in answer to received ones

	startedAt time.Time // when start was sent
	pingedAt  time.Time
	hungUp    bool // hangup was sent: the end of the connection is expected
	writeErr  error
}

// Run holds one session and returns the report. It returns an error only for a check that was
// interrupted or could not begin; an unreachable provider is a failed point of the report.
func Run(ctx context.Context, config Config) (*Report, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}

	protocol, _ := dialect.Find(config.Protocol)
	report := &Report{URL: config.URL, Protocol: config.Protocol, Format: config.Format.Encoding}
	conn, took, err := connect(ctx, config)

	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		report.add("connection", Fail, "%v", err)
		return report, nil
	}
	defer func() { _ = conn.Close() }() // closed before, or lost

	report.add("connection", Pass, "open after %v%s", roundDuration(took), tlsSuffix(conn))
	s := &session{
		config: config, protocol: protocol, dialect: protocol.New(config.dialect()), conn: conn,
		call:  aiprotocol.Call{CallID: uuid.NewString()},
		ended: make(chan struct{}), replies: make(chan *aiprotocol.Message, 16),
		received: received{events: map[aiprotocol.Event]int{}},
	}
	conn.SetReadLimit(maxMessageBytes)
	conn.SetPongHandler(func(string) error { s.received.pongAt = time.Now(); return nil })
	go s.readMessages()
	s.writeErr = s.runSession(ctx)
	s.disconnect()

	if ctx.Err() != nil {
		return nil, ctx.Err()
	}

	s.judge(report)
	report.OK = report.Failed() == 0
	return report, nil
}

// runSession sends the messages of a whole session, up to the hangup. It returns early if the
// provider closes the connection.
func (s *session) runSession(ctx context.Context) error {
	// What comes in this time came before start, which must be the first message.
	if !s.sleepUntil(ctx, time.Now().Add(silenceBeforeStart)) {
		return nil
	}

	s.startedAt = time.Now()
	s.started.Store(true)
	err := s.send(&aiprotocol.Message{Event: aiprotocol.EventStart, Start: aiprotocol.Start{
		Call: s.call, CallerIDNumber: "+15550100001", CalleeIDNumber: "+15550100002", AccountID: "check",
		Media:     s.config.Format,
		SessionID: s.call.CallID,
	}})
	if err != nil {
		return err
	}

	frames := int(s.config.Duration / aiprotocol.FrameDuration)
	for n := 0; n < frames && !s.hangupRequested.Load(); n++ {
		if !s.sleepUntil(ctx, s.startedAt.Add(time.Duration(n)*aiprotocol.FrameDuration)) {
			return nil
		}
		if err := s.sendFrame(n, frames); err != nil {
			return err
		}
	}

	err = s.send(&aiprotocol.Message{
		Event: aiprotocol.EventHangup, Hangup: aiprotocol.Hangup{Call: s.call, Reason: aiprotocol.NormalClearing},
	})
	s.hungUp = err == nil

	return err
}

// sendFrame sends one audio frame and the other messages that are due with it.
func (s *session) sendFrame(n, frames int) error {
	switch n {
	case frames / 4:
		s.pingedAt = time.Now()
		if err := s.conn.WriteControl(websocket.PingMessage, []byte("check"),
			time.Now().Add(writeTimeout)); err != nil {
			return err
		}
	case frames / 3, frames / 2:
		press := aiprotocol.DTMF{Call: s.call, Digit: "5", Duration: 160 * time.Millisecond}
		if n == frames/2 {
			press.Digit, press.Duration = "#", 0 // a DTMF event with unknown duration
		}
		if err := s.send(&aiprotocol.Message{Event: aiprotocol.EventDTMF, DTMF: press}); err != nil {
			return err
		}
	}

	select {
	case reply := <-s.replies:
		if err := s.send(reply); err != nil {
			return err
		}
	default:
	}

	kind := websocket.TextMessage
	if s.protocol.BinaryAudio {
		kind = websocket.BinaryMessage
	}

	return s.write(kind, s.dialect.AppendAudio(nil, toneFrame(s.config.Format, n), aiprotocol.NoTrack))
}

// replyTo answers messages of the extensions as the service does, as if all audio were played at
// once.
func (s *session) replyTo(m *aiprotocol.Message) {
	var reply *aiprotocol.Message
	switch m.Event {
	case aiprotocol.EventHangup:
		s.hangupRequested.Store(true)
		return
	case aiprotocol.EventClear:
		reply = &aiprotocol.Message{Event: aiprotocol.EventCleared,
			Cleared: aiprotocol.Cleared{Played: s.received.audio}}
	case aiprotocol.EventMark:
		reply = &aiprotocol.Message{Event: m.Event, Mark: aiprotocol.Mark{Name: m.Mark.Name, Played: s.received.audio}}
	case aiprotocol.EventFunction:
		reply = &aiprotocol.Message{Event: aiprotocol.EventError, Refused: m.Event, Refusal: m.Refusal}
	default:
		return
	}

	select {
	case s.replies <- reply:
	default: // too many: dropped
	}
}

// send sends what the protocol has for a message.
func (s *session) send(m *aiprotocol.Message) (err error) {
	s.dialect.Encode(m, func(appendTo func([]byte) []byte) {
		if err == nil {
			err = s.write(websocket.TextMessage, appendTo(nil))
		}
	})
	return err
}

func (s *session) write(kind int, message []byte) error {
	if err := s.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	return s.conn.WriteMessage(kind, message)
}

// sleepUntil returns false once the connection has ended.
func (s *session) sleepUntil(ctx context.Context, until time.Time) bool {
	select {
	case <-s.ended:
		return false
	case <-ctx.Done():
		return false
	case <-time.After(time.Until(until)):
		return true
	}
}

// disconnect closes the connection as the service does and waits for the peer's close.
func (s *session) disconnect() {
	now := time.Now()
	bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = s.conn.WriteControl(websocket.CloseMessage, bye, now.Add(writeTimeout)) // judged by the received close
	_ = s.conn.SetReadDeadline(now.Add(closeTimeout))
	<-s.ended
}
