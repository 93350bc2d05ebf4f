package aiecho

import (
	"fmt"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"trunkline/internal/aiprotocol"
)

// audioInterval is the interval between a session's lines about its audio.
const audioInterval = 5 * time.Second

// session is one call.
type session struct {
	number  int64
	conn    *websocket.Conn
	decoder aiprotocol.Decoder
	printf  func(format string, args ...any)

	received    map[aiprotocol.Event]int
	violations  int // messages outside the protocol
	audioBytes  int
	reportedAt  time.Time // the last line about the audio
	writeBuffer []byte
}

// run answers until the connection ends and prints how it ended.
func (s *session) run() error {
	s.reportedAt = time.Now()
	for {
		kind, raw, err := s.conn.ReadMessage()
		if err != nil {
			return err
		}

		if kind != websocket.TextMessage {
			s.printViolation("a binary frame of %d bytes", len(raw))
			continue
		}

		message, err := s.decoder.ToProvider(raw)
		if err != nil {
			s.printViolation("%v", err)
			continue
		}

		s.received[message.Event]++
		if err := s.handle(message); err != nil {
			return err
		}
	}
}

// maxViolations is the largest number of messages outside the protocol printed per session.
const maxViolations = 20

func (s *session) printViolation(format string, args ...any) {
	s.violations++
	if s.violations <= maxViolations {
		s.printf("PROTOCOL VIOLATION: "+format, args...)
	}
}

func (s *session) handle(m *aiprotocol.Message) error {
	starts := s.received[aiprotocol.EventStart]
	if m.Event != aiprotocol.EventStart && starts == 0 {
		s.printViolation("%s before start", m.Event)
	}
	if s.received[aiprotocol.EventHangup] > 0 && m.Event != aiprotocol.EventHangup {
		s.printViolation("%s after hangup", m.Event)
	}

	switch m.Event {
	case aiprotocol.EventStart:
		if s.received[m.Event] > 1 {
			s.printViolation("a second start")
		}
		c := m.Start
		s.printf("start, call %q, other leg %q, from %q to %q, account %q, %s at %d Hz", c.CallID, c.OtherLegCallID,
			c.CallerIDNumber, c.CalleeIDNumber, c.AccountID, c.Media.Encoding, c.Media.SampleRate)
	case aiprotocol.EventMedia:
		return s.echo(m.Audio)
	case aiprotocol.EventDTMF:
		s.printf("dtmf %s%s", m.DTMF.Digit, durationText(m.DTMF.Duration))
	case aiprotocol.EventHangup:
		s.printf("hangup %s", m.Hangup.Reason)
	case aiprotocol.EventMark:
		s.printf("mark %q, played %v", m.Mark.Name, m.Mark.Played)
	case aiprotocol.EventCleared:
		s.printf("cleared, played %v, dropped %v", m.Cleared.Played, m.Cleared.Dropped)
	}

	return nil
}

func (s *session) echo(audio []byte) error {
	s.audioBytes += len(audio)
	if time.Since(s.reportedAt) >= audioInterval {
		s.reportedAt = time.Now()
		s.printf("media, %d messages, %d bytes so far", s.received[aiprotocol.EventMedia], s.audioBytes)
	}

	s.writeBuffer = aiprotocol.AppendMedia(s.writeBuffer[:0], audio)
	if err := s.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}

	return s.conn.WriteMessage(websocket.TextMessage, s.writeBuffer)
}

func durationText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return fmt.Sprintf(", %d ms", d.Milliseconds())
}

// counts returns the number of messages received by type, in the protocol's
// order.
func (s *session) counts() string {
	var words []string
	for _, event := range []aiprotocol.Event{aiprotocol.EventStart, aiprotocol.EventMedia, aiprotocol.EventDTMF,
		aiprotocol.EventHangup, aiprotocol.EventMark, aiprotocol.EventCleared} {
		n := s.received[event]
		if n > 0 || event == aiprotocol.EventStart || event == aiprotocol.EventMedia {
			words = append(words, fmt.Sprintf("%d %s", n, event))
		}
	}

	if s.violations > 0 {
		words = append(words, fmt.Sprintf("%d not of the protocol", s.violations))
	}

	return strings.Join(words, ", ")
}
