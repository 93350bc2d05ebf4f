package aicheck

import (
	"errors"
	"slices"
	"time"

	"github.com/gorilla/websocket"

	"trunkline/internal/aiprotocol"
	"trunkline/internal/aiprotocol/dialect"
)

// received records the messages of a provider.
type received struct {
	messages     int // text frames
	binaryFrames int
	beforeStart  int // frames before start
	events       map[aiprotocol.Event]int

	tolerated []string // Trunkline accepts or ignores the message
	malformed []string // Trunkline drops the message
	badAudio  []string // what is wrong with chunks of audio

	chunks             int
	minBytes, maxBytes int           // bytes of a chunk
	partialChunks      int           // chunks that are not a whole number of frames
	audio              time.Duration // of all chunks
	firstAt, lastAt    time.Time     // chunk
	maxAhead           time.Duration // largest amount of received audio that could not be played yet

	pongAt  time.Time
	readErr error // the error that ended the connection
}

// maxFaults is the maximum number of different faults in each list of the report.
const maxFaults = 5

func appendFault(faults []string, text string) []string {
	if len(faults) < maxFaults && !slices.Contains(faults, text) {
		faults = append(faults, text)
	}
	return faults
}

// readMessages reads until the connection ends.
func (s *session) readMessages() {
	defer close(s.ended)

	strict := aiprotocol.Decoder{Extensions: s.config.Extensions, Strict: true}
	lenient := aiprotocol.Decoder{Extensions: s.config.Extensions}
	for {
		kind, raw, err := s.conn.ReadMessage()
		if err != nil {
			s.received.readErr = err
			return
		}

		if !s.started.Load() && s.protocol.Name == dialect.Trunkline {
			s.received.beforeStart++
		}
		if kind != websocket.TextMessage && !s.protocol.BinaryAudio {
			s.received.binaryFrames++
			continue
		}

		s.received.messages++
		message := s.decode(kind, raw, &strict, &lenient)
		if message == nil {
			continue
		}

		s.received.record(s.config.Format, message)
		s.replyTo(message)
	}
}

// decode decodes a message as the service does, and records what is wrong with it. It returns nil for a message that
// the service drops or does not need.
func (s *session) decode(kind int, raw []byte, strict, lenient *aiprotocol.Decoder) *aiprotocol.Message {
	if kind == websocket.BinaryMessage {
		return &aiprotocol.Message{Event: aiprotocol.EventMedia, Audio: raw}
	}

	if s.protocol.Name == dialect.Trunkline {
		message, err := strict.FromProvider(raw)
		if err != nil {
			return s.received.decodeLenient(lenient, raw, err)
		}
		return message
	}

	message, err := s.dialect.Decode(raw)
	switch {
	case err != nil:
		s.received.malformed = appendFault(s.received.malformed, err.Error())
	case message != nil && message.Event == aiprotocol.EventVendorError:
		s.received.malformed = appendFault(s.received.malformed, "the provider reports "+message.Refusal)
	}

	return message
}

// decodeLenient records the strict decoder's error and returns the message as Trunkline decodes
// it, nil if Trunkline drops it.
func (h *received) decodeLenient(lenient *aiprotocol.Decoder, raw []byte, strictErr error) *aiprotocol.Message {
	message, err := lenient.FromProvider(raw)
	var problem *aiprotocol.Error
	switch {
	case err == nil:
		h.tolerated = appendFault(h.tolerated, strictErr.Error())
	case errors.As(err, &problem) && problem.Problem == aiprotocol.ProblemUnknown:
		h.tolerated = appendFault(h.tolerated, err.Error()+", and is ignored")
	default:
		h.malformed = appendFault(h.malformed, err.Error())
	}

	return message
}

func (h *received) record(format aiprotocol.Format, m *aiprotocol.Message) {
	h.events[m.Event]++
	if m.Event != aiprotocol.EventMedia {
		return
	}

	now, size := time.Now(), len(m.Audio)
	if h.chunks == 0 {
		h.firstAt, h.minBytes = now, size
	}

	h.chunks++
	h.lastAt = now
	h.minBytes, h.maxBytes = min(h.minBytes, size), max(h.maxBytes, size)
	duration, err := audioDuration(format, m.Audio)
	if err != nil {
		h.badAudio = appendFault(h.badAudio, err.Error())
		return
	}

	// Not a fault: Trunkline splits audio into frames itself.
	if duration == 0 || duration%aiprotocol.FrameDuration != 0 {
		h.partialChunks++
	}

	h.audio += duration
	h.maxAhead = max(h.maxAhead, h.audio-now.Sub(h.firstAt))
}
