package rtp

import (
	"context"
	"sync"
	"time"

	"trunkline/internal/fault"
)

// Format is what a stream sends.
type Format struct {
	PayloadType uint8
	Clock       uint32        // RTP clock in Hz
	Frame       time.Duration // of audio in one packet
	// Events is the payload type of telephone-event, 0 when there is none, and
	// EventsClock its clock when that is not the audio's.
	Events      uint8
	EventsClock uint32
}

func (f Format) samples() uint32 { return ticks(f.Frame, f.Clock) }

func (f Format) eventsRate() uint32 {
	if f.EventsClock == 0 {
		return f.Clock
	}
	return f.EventsClock
}

// ticks is a length on a clock.
func ticks(length time.Duration, clock uint32) uint32 {
	return uint32(length.Nanoseconds() * int64(clock) / int64(time.Second))
}

// Source gives a stream its audio.
type Source interface {
	// Next puts the next frame's payload into buffer and returns its length; 0
	// is silence: no packet is sent, and time goes on.
	Next(buffer []byte) int
}

// Stream sends media of our own out of a port. Its methods may be called from
// several goroutines.
type Stream struct {
	port   *Port
	format Format
	id     *byte

	mu        sync.Mutex
	sequence  uint16
	timestamp uint32
	silent    bool // the packet before was not sent: the next begins a talkspurt
	pressing  bool // a digit is being sent in place of audio
	buffer    [maxPacket]byte
}

// NewStream makes one. Its packets go on from whatever the port sent before.
func NewStream(port *Port, format Format) *Stream {
	return &Stream{port: port, format: format, id: new(byte), silent: true}
}

// Send sends one frame now; who calls it keeps the pace. While a digit is sent,
// frames are dropped and time goes on.
func (s *Stream) Send(payload []byte) error {
	if len(payload) > maxPacket-headerSize {
		return fault.New(fault.KindTooLarge, "a media frame of %d bytes", len(payload))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	timestamp := s.timestamp
	s.timestamp += s.format.samples()
	if s.pressing || len(payload) == 0 {
		s.silent = true
		return nil
	}
	marker := s.silent
	s.silent = false
	return s.put(s.format.PayloadType, marker, timestamp, payload)
}

// put sends a packet; mu is held.
func (s *Stream) put(payloadType uint8, marker bool, timestamp uint32, payload []byte) error {
	packet := s.buffer[:headerSize+len(payload)]
	putHeader(packet, payloadType, marker, s.sequence, timestamp)
	copy(packet[headerSize:], payload)
	s.sequence++
	return s.port.send(packet, feed{from: s.id}, s.format.Clock)
}

// Run sends what source gives, a frame at each of its deadlines, which do not
// drift, until ctx ends. Frames that a stalled process missed are left out.
func (s *Stream) Run(ctx context.Context, source Source) {
	var frame [maxPacket - headerSize]byte
	deadline := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		// An error is counted by the port; the next frame may get through.
		_ = s.Send(frame[:source.Next(frame[:])])
		deadline = deadline.Add(s.format.Frame)
		if late := time.Since(deadline); late > lateLimit {
			missed := late / s.format.Frame
			s.skip(uint32(missed))
			deadline = deadline.Add(missed * s.format.Frame)
		}
		timer.Reset(time.Until(deadline))
	}
}

// lateLimit is how far behind its deadlines a stream makes up for.
const lateLimit = 200 * time.Millisecond

func (s *Stream) skip(frames uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timestamp += frames * s.format.samples()
	s.silent = true
}
