package aicheck

import (
	"errors"
	"net"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"trunkline/internal/aiprotocol"
)

// muchAhead is the amount of queued audio above which the report warns: the service may not keep
// more.
const muchAhead = 30 * time.Second

// judge returns the report of the received messages.
func (s *session) judge(r *Report) {
	s.judgeStart(r)
	s.judgeMessages(r)
	s.judgeAudio(r)
	s.judgePing(r)
	s.judgeStay(r)
	if s.hungUp {
		s.judgeClose(r)
	}
}

func (s *session) judgeStart(r *Report) {
	if s.received.early > 0 {
		r.add("start", Fail, "%d frames were sent before start, which is the first message", s.received.early)
		return
	}
	r.add("start", Pass, "nothing came before it")
}

func (s *session) judgeMessages(r *Report) {
	h := &s.received
	if h.binary > 0 {
		r.add("frames", Fail, "%d binary frames: messages are JSON in text frames", h.binary)
	} else {
		r.add("frames", Pass, "%d, all text", h.messages)
	}
	switch {
	case len(h.wrong) > 0:
		r.add("messages", Fail, "dropped: %s", strings.Join(append(h.wrong, h.odd...), "; "))
	case len(h.odd) > 0:
		r.add("messages", Warn, "not described: %s", strings.Join(h.odd, "; "))
	case h.messages == 0:
		r.add("messages", Warn, "there were none")
	default:
		r.add("messages", Pass, "%s, as described", h.counts())
	}
}

// counts lists the received events with their numbers.
func (h *received) counts() string {
	var words []string
	for _, event := range []aiprotocol.Event{aiprotocol.EventMedia, aiprotocol.EventClear, aiprotocol.EventMark,
		aiprotocol.EventHangup, aiprotocol.EventTransfer, aiprotocol.EventDTMF} {
		if n := h.events[event]; n > 0 {
			words = append(words, number(n)+" "+string(event))
		}
	}
	return strings.Join(words, ", ")
}

func (s *session) judgeAudio(r *Report) {
	h := &s.received
	if h.chunks == 0 {
		r.add("audio", Warn, "no audio was returned")
		return
	}
	r.add("audio", Pass, "%d messages, the first %v after start", h.chunks, rounded(h.first.Sub(s.begun)))
	switch sizes := h.sizes(); {
	case len(h.badAudio) > 0:
		r.add("chunks", Fail, "%s, with %s", sizes, strings.Join(h.badAudio, "; "))
	case h.ragged > 0:
		r.add("chunks", Pass, "%s, %d of them no whole frames of 20 ms: the service makes frames of them", sizes, h.ragged)
	default:
		r.add("chunks", Pass, "%s, whole frames of 20 ms", sizes)
	}
	result := Pass
	if h.ahead > muchAhead {
		result = Warn
	}
	r.add("pace", result, "%v of audio within %v, at most %v ahead of what could be played",
		rounded(h.audio), rounded(h.last.Sub(h.first)), rounded(h.ahead))
}

func (h *received) sizes() string {
	if h.least == h.longest {
		return number(h.least) + " bytes each"
	}
	return number(h.least) + " to " + number(h.longest) + " bytes"
}

func (s *session) judgePing(r *Report) {
	switch {
	case !s.received.pong.IsZero():
		r.add("ping", Pass, "answered after %v", rounded(s.received.pong.Sub(s.pinged)))
	case !s.hungUp || s.pinged.IsZero():
		r.add("ping", Warn, "the session ended before it was answered")
	default:
		r.add("ping", Fail, "not answered: the service takes the provider for gone")
	}
}

// judgeStay judges a provider that closed the connection before the hangup.
func (s *session) judgeStay(r *Report) {
	switch {
	case s.hungUp:
		r.add("stays", Pass, "until the hangup")
	case isTimeout(s.failure):
		r.add("stays", Fail, "it does not read: a message waited for %v", writeTimeout)
	case errors.Is(s.received.err, websocket.ErrReadLimit):
		r.add("stays", Fail, "a message was over 1 MiB, which ends the session")
	default:
		r.add("stays", Fail, "it left before the hangup: %s", reason(s.received.err, s.failure))
	}
}

func (s *session) judgeClose(r *Report) {
	var closed *websocket.CloseError
	switch {
	case !errors.As(s.received.err, &closed) || closed.Code == websocket.CloseAbnormalClosure:
		r.add("close", Fail, "not answered with a close frame within %v: %s", closeTimeout, reason(s.received.err, s.failure))
	case closed.Code != websocket.CloseNormalClosure:
		r.add("close", Warn, "answered with %d, want 1000", closed.Code)
	default:
		r.add("close", Pass, "answered with 1000")
	}
}

func isTimeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

// reason returns why a connection ended, the peer's close reason first.
func reason(heard, written error) string {
	var closed *websocket.CloseError
	switch {
	case errors.As(heard, &closed) && closed.Code != websocket.CloseAbnormalClosure:
		return "close " + number(closed.Code) + " " + closed.Text
	case heard != nil:
		return heard.Error()
	case written != nil:
		return written.Error()
	}
	return "no reason given"
}
