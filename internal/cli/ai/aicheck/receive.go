package aicheck

import (
	"errors"
	"slices"
	"time"

	"github.com/gorilla/websocket"

	"trunkline/internal/aiprotocol"
)

// received records the messages of a provider.
type received struct {
	messages int // text frames
	binary   int
	early    int // frames before start
	events   map[aiprotocol.Event]int

	odd      []string // tolerated by the service: the message counts, or is ignored
	wrong    []string // malformed for the service, which drops it
	badAudio []string

	chunks         int
	least, longest int           // bytes of a chunk
	ragged         int           // chunks that are not a whole number of frames
	audio          time.Duration // of all chunks
	first, last    time.Time     // chunk
	ahead          time.Duration // most audio that was received but not playable yet

	pong time.Time
	err  error // that ended the connection
}

// kinds bounds the number of different faults that are kept.
const kinds = 5

func note(faults []string, text string) []string {
	if len(faults) < kinds && !slices.Contains(faults, text) {
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
			s.received.err = err
			return
		}
		if !s.started.Load() {
			s.received.early++
		}
		if kind != websocket.TextMessage {
			s.received.binary++
			continue
		}
		s.received.messages++
		message, err := strict.FromProvider(raw)
		if err != nil {
			if message = s.received.fault(&lenient, raw, err); message == nil {
				continue
			}
		}
		s.received.take(s.config.Format, message)
		s.react(message)
	}
}

// fault records the strict decoder's error and returns the message as the service decodes it, nil
// if the service drops it.
func (h *received) fault(lenient *aiprotocol.Decoder, raw []byte, strictly error) *aiprotocol.Message {
	message, err := lenient.FromProvider(raw)
	var problem *aiprotocol.Error
	switch {
	case err == nil:
		h.odd = note(h.odd, strictly.Error())
	case errors.As(err, &problem) && problem.Problem == aiprotocol.ProblemUnknown:
		h.odd = note(h.odd, err.Error()+", and is ignored")
	default:
		h.wrong = note(h.wrong, err.Error())
	}
	return message
}

func (h *received) take(format aiprotocol.Format, m *aiprotocol.Message) {
	h.events[m.Event]++
	if m.Event != aiprotocol.EventMedia {
		return
	}
	now, size := time.Now(), len(m.Audio)
	if h.chunks == 0 {
		h.first, h.least = now, size
	}
	h.chunks++
	h.last = now
	h.least, h.longest = min(h.least, size), max(h.longest, size)
	lasts, err := length(format, m.Audio)
	if err != nil {
		h.badAudio = note(h.badAudio, err.Error())
		return
	}
	if lasts == 0 || lasts%aiprotocol.Frame != 0 {
		h.ragged++
	}
	h.audio += lasts
	h.ahead = max(h.ahead, h.audio-now.Sub(h.first))
}
