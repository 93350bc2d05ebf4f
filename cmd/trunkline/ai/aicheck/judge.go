package aicheck

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"trunkline/internal/aiprotocol"
)

// warnAhead is the amount of queued audio above which the report warns: Trunkline may drop more.
const warnAhead = 30 * time.Second

// judge returns the report of the received messages.
func (s *session) judge(r *Report) {
	s.judgeStart(r)
	s.judgeMessages(r)
	s.judgeAudio(r)
	s.judgePing(r)
	s.judgeEarlyClose(r)
	if s.hungUp {
		s.judgeClose(r)
	}
}

func (s *session) judgeStart(r *Report) {
	if s.received.beforeStart > 0 {
		r.add("start", Fail, "%d frames were sent before start, which must be the first message",
			s.received.beforeStart)
		return
	}
	r.add("start", Pass, "nothing came before it")
}

func (s *session) judgeMessages(r *Report) {
	h := &s.received
	if h.binaryFrames > 0 {
		r.add("frames", Fail, "%d binary frames: messages are JSON in text frames", h.binaryFrames)
	} else {
		text := ", all text"
		if s.protocol.BinaryAudio {
			text = ""
		}
		r.add("frames", Pass, "%d%s", h.messages, text)
	}

	switch {
	case len(h.malformed) > 0:
		r.add("messages", Fail, "dropped: %s", strings.Join(append(h.malformed, h.tolerated...), "; "))
	case len(h.tolerated) > 0:
		r.add("messages", Warn, "not in the protocol: %s", strings.Join(h.tolerated, "; "))
	case h.messages == 0:
		r.add("messages", Warn, "none received")
	default:
		r.add("messages", Pass, "%s, as described", h.counts())
	}
}

// counts lists the received events, each with its number of messages.
func (h *received) counts() string {
	var words []string
	for _, event := range []aiprotocol.Event{aiprotocol.EventMedia, aiprotocol.EventClear, aiprotocol.EventMark,
		aiprotocol.EventHangup, aiprotocol.EventTransfer, aiprotocol.EventDTMF, aiprotocol.EventFunction} {
		n := h.events[event]
		if n > 0 {
			words = append(words, strconv.Itoa(n)+" "+string(event))
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

	r.add("audio", Pass, "%d messages, the first %v after start", h.chunks, roundDuration(h.firstAt.Sub(s.startedAt)))
	switch sizes := h.chunkSizes(); {
	case len(h.badAudio) > 0:
		r.add("chunks", Fail, "%s, with %s", sizes, strings.Join(h.badAudio, "; "))
	case h.partialChunks > 0:
		r.add("chunks", Pass, "%s, %d of them not a whole number of 20 ms frames: Trunkline splits them into frames",
			sizes, h.partialChunks)
	default:
		r.add("chunks", Pass, "%s, whole frames of 20 ms", sizes)
	}

	result := Pass
	if h.maxAhead > warnAhead {
		result = Warn
	}

	r.add("pace", result, "%v of audio within %v, at most %v ahead of what could be played",
		roundDuration(h.audio), roundDuration(h.lastAt.Sub(h.firstAt)), roundDuration(h.maxAhead))
}

func (h *received) chunkSizes() string {
	if h.minBytes == h.maxBytes {
		return strconv.Itoa(h.minBytes) + " bytes each"
	}
	return strconv.Itoa(h.minBytes) + " to " + strconv.Itoa(h.maxBytes) + " bytes"
}

func (s *session) judgePing(r *Report) {
	switch {
	case !s.received.pongAt.IsZero():
		r.add("ping", Pass, "answered after %v", roundDuration(s.received.pongAt.Sub(s.pingedAt)))
	case !s.hungUp || s.pingedAt.IsZero():
		r.add("ping", Warn, "the session ended before it was answered")
	default:
		r.add("ping", Fail, "not answered: Trunkline would end the session")
	}
}

// judgeEarlyClose judges a provider that closed the connection before the hangup.
func (s *session) judgeEarlyClose(r *Report) {
	switch {
	case s.hungUp:
		r.add("stays", Pass, "until the hangup")
	case isTimeout(s.writeErr):
		r.add("stays", Fail, "the provider does not read: a write timed out after %v", writeTimeout)
	case errors.Is(s.received.readErr, websocket.ErrReadLimit):
		r.add("stays", Fail, "a message was over 1 MiB, which ends the session")
	default:
		r.add("stays", Fail, "the provider closed the connection before the hangup: %s",
			closeReason(s.received.readErr, s.writeErr))
	}
}

func (s *session) judgeClose(r *Report) {
	var closed *websocket.CloseError
	switch {
	case !errors.As(s.received.readErr, &closed) || closed.Code == websocket.CloseAbnormalClosure:
		r.add("close", Fail, "not answered with a close frame within %v: %s", closeTimeout,
			closeReason(s.received.readErr, s.writeErr))
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

// closeReason returns the reason for the end of a connection, preferably that of the peer's close
// frame.
func closeReason(readErr, writeErr error) string {
	var closed *websocket.CloseError
	switch {
	case errors.As(readErr, &closed) && closed.Code != websocket.CloseAbnormalClosure:
		return "close " + strconv.Itoa(closed.Code) + " " + closed.Text
	case readErr != nil:
		return readErr.Error()
	case writeErr != nil:
		return writeErr.Error()
	}

	return "no reason given"
}
