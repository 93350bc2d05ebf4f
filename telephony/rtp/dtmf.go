package rtp

import (
	"context"
	"encoding/binary"
	"strings"
	"time"

	"trunkline/internal/fault"
)

// digits are the keys of RFC 4733, section 3.2, indexed by event number.
const digits = "0123456789*#ABCD"

const (
	eventSize   = 4    // bytes of a telephone-event payload
	endBit      = 0x80 // of its second byte: the key was released
	eventVolume = 10   // -10 dBm0
	// endRepeats is the number of times an event's end is sent (RFC 4733, section 2.5.1.4).
	endRepeats = 3
	// releaseAfter is the time after a key's last packet at which the key counts as released if the
	// packets of its end were lost. Senders repeat an event at least every 50 ms.
	releaseAfter = 120 * time.Millisecond
)

// DTMF is one key press.
type DTMF struct {
	Digit    byte // one of 0-9 * # A-D
	Duration time.Duration
}

// DTMFReceiver converts telephone-event packets to key presses. It returns one DTMF per press even if
// packets are repeated or lost. It is for one stream and one goroutine at a time.
type DTMFReceiver struct {
	// Clock is the RTP clock of the events in Hz.
	Clock uint32

	pressed         bool          // a press has begun and not ended
	digit           byte          // of the present or last press
	timestamp       uint32        // timestamp of the press, the same in all its packets
	duration        uint16        // of the present segment so far, in ticks of Clock
	earlierSegments time.Duration // duration of the earlier segments of a long press
	lastPacket      time.Time     // when the last one of the press arrived
	reported        bool          // a press was reported, with this timestamp
}

// HandleEvent handles a telephone-event packet. It returns the press that the packet ends, or the previous
// press if its end was lost.
func (r *DTMFReceiver) HandleEvent(packet *Packet, now time.Time) (DTMF, bool) {
	if len(packet.Payload) < eventSize || int(packet.Payload[0]) >= len(digits) {
		return DTMF{}, false
	}

	digit, end := digits[packet.Payload[0]], packet.Payload[1]&endBit != 0
	duration := binary.BigEndian.Uint16(packet.Payload[2:])
	if !r.pressed && r.reported && int32(packet.Timestamp-r.timestamp) <= 0 {
		return DTMF{}, false // a repeated end, or a packet out of order
	}

	var (
		press DTMF
		ended bool
	)

	if r.pressed && packet.Timestamp != r.timestamp {
		switch {
		case int32(packet.Timestamp-r.timestamp) < 0:
			return DTMF{}, false
		case r.isNextSegment(digit, packet.Timestamp):
			r.earlierSegments += r.toDuration(r.duration)
			r.timestamp, r.duration = packet.Timestamp, 0
		default:
			press, ended = r.finishPress(), true
		}
	}

	if !r.pressed {
		r.pressed, r.digit, r.timestamp, r.duration, r.earlierSegments = true, digit, packet.Timestamp, 0, 0
	}

	r.duration, r.lastPacket = max(r.duration, duration), now
	if end && !ended {
		return r.finishPress(), true
	}

	// Only one press can be returned per packet. If the packet is the only one of its press and the
	// end of the previous press was lost, CheckTimeout returns the second press.
	return press, ended
}

// isNextSegment reports whether an event is the next segment of a press longer than 65,535 ticks (RFC
// 4733, section 2.5.1.3).
func (r *DTMFReceiver) isNextSegment(digit byte, timestamp uint32) bool {
	const nearFull = 0xF000
	return digit == r.digit && r.duration >= nearFull && timestamp-r.timestamp <= 0xFFFF
}

// CheckTimeout is called on any other packet or periodically. It returns a press whose end was lost once it
// counts as released.
func (r *DTMFReceiver) CheckTimeout(now time.Time) (DTMF, bool) {
	if !r.pressed || now.Sub(r.lastPacket) < releaseAfter {
		return DTMF{}, false
	}
	return r.finishPress(), true
}

func (r *DTMFReceiver) finishPress() DTMF {
	r.pressed, r.reported = false, true
	return DTMF{Digit: r.digit, Duration: r.earlierSegments + r.toDuration(r.duration)}
}

func (r *DTMFReceiver) toDuration(ticks uint16) time.Duration {
	return time.Duration(ticks) * time.Second / time.Duration(max(r.Clock, 1))
}

// SendDTMF sends a key press (RFC 4733) in place of audio and returns when it has been sent or ctx has
// ended. No audio is sent meanwhile.
func (s *Stream) SendDTMF(ctx context.Context, digit byte, duration time.Duration) error {
	event := strings.IndexByte(digits, digit)
	if event < 0 || s.format.TelephoneEventType == 0 {
		return fault.New(fault.KindUnsupported, "the peer did not negotiate telephone-event")
	}

	timestamp, ok := s.beginPress()
	if !ok {
		return fault.Conflict("another key press is being sent")
	}
	defer s.endPress(timestamp, duration)

	timer := time.NewTimer(0)
	defer timer.Stop()

	clock := s.format.eventClockRate()
	// Both in ticks of the events' clock.
	total, step := min(max(ticks(duration, clock), 1), 0xFFFF), ticks(s.format.Frame, clock)
	start := time.Now()
	for packets := 0; ; packets++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}

		played := min(uint32(packets+1)*step, total)
		ended := played == total
		for range 1 + (endRepeats-1)*btoi(ended) {
			if err := s.sendEvent(byte(event), ended, packets == 0, timestamp, uint16(played)); err != nil {
				return err
			}
		}

		if ended {
			return nil
		}

		timer.Reset(time.Until(start.Add(time.Duration(packets+1) * s.format.Frame)))
	}
}

// btoi returns 1 for true.
func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// beginPress stops the audio and returns the timestamp of the press; false if another press is being sent.
func (s *Stream) beginPress() (timestamp uint32, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sendingDTMF {
		return 0, false
	}
	s.sendingDTMF = true
	return s.timestamp, true
}

// endPress resumes audio after a key press.
func (s *Stream) endPress(pressed uint32, duration time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sendingDTMF, s.inSilence = false, true
	after := pressed + ticks(duration, s.format.Clock)
	if int32(after-s.timestamp) > 0 {
		s.timestamp = after // no audio arrived during the press
	}
}

// sendEvent sends one packet of a press. event is the key's number, and played the duration so far in ticks.
func (s *Stream) sendEvent(event byte, end, first bool, timestamp uint32, played uint16) error {
	payload := [eventSize]byte{event, eventVolume}
	if end {
		payload[1] |= endBit
	}
	binary.BigEndian.PutUint16(payload[2:], played)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sendPacket(s.format.TelephoneEventType, first, timestamp, payload[:])
}
