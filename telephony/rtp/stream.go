package rtp

import (
	"context"
	"sync"
	"time"

	"trunkline/internal/fault"
)

// Format is the format of the packets that a stream sends.
type Format struct {
	PayloadType uint8
	Clock       uint32        // RTP clock in Hz
	Frame       time.Duration // duration of the audio in one packet
	// TelephoneEventType is the payload type of telephone-event (DTMF, RFC 4733), or 0 for none.
	// TelephoneEventClock is its clock in Hz if it differs from Clock.
	TelephoneEventType  uint8
	TelephoneEventClock uint32
}

func (f Format) frameSamples() uint32 { return ticks(f.Frame, f.Clock) }

func (f Format) eventClockRate() uint32 {
	if f.TelephoneEventClock == 0 {
		return f.Clock
	}
	return f.TelephoneEventClock
}

// ticks converts a duration to ticks of a clock in Hz.
func ticks(length time.Duration, clock uint32) uint32 {
	return uint32(length.Nanoseconds() * int64(clock) / int64(time.Second))
}

// Source supplies the audio of a stream.
type Source interface {
	// Next writes the next frame's payload to buffer and returns its length. 0 means silence: no
	// packet is sent and the timestamp advances.
	Next(buffer []byte) int
}

// Stream sends media that this process produces from a port. Its methods are safe for concurrent use.
type Stream struct {
	port   *Port
	format Format
	id     *byte // see packetOrigin

	mu          sync.Mutex
	sequence    uint16 // of the next packet
	timestamp   uint32 // of the next frame
	inSilence   bool   // the last frame was not sent: the next packet begins a talkspurt
	sendingDTMF bool   // a digit is being sent in place of audio
	buffer      [maxPacketBytes]byte
}

// NewStream returns a stream. Its packets continue the numbering of the port's earlier packets.
func NewStream(port *Port, format Format) *Stream {
	return &Stream{port: port, format: format, id: new(byte), inSilence: true}
}

// Send sends one frame immediately; the caller keeps the pace. While a key press is being sent, frames
// are dropped and the timestamp advances.
func (s *Stream) Send(payload []byte) error {
	if len(payload) > maxPacketBytes-headerSize {
		return fault.New(fault.KindTooLarge, "media frame of %d bytes is too large", len(payload))
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	timestamp := s.timestamp
	s.timestamp += s.format.frameSamples()
	if s.sendingDTMF || len(payload) == 0 {
		s.inSilence = true
		return nil
	}

	marker := s.inSilence
	s.inSilence = false
	return s.sendPacket(s.format.PayloadType, marker, timestamp, payload)
}

// sendPacket sends a packet. The caller holds mu.
func (s *Stream) sendPacket(payloadType uint8, marker bool, timestamp uint32, payload []byte) error {
	packet := s.buffer[:headerSize+len(payload)]
	putHeader(packet, payloadType, marker, s.sequence, timestamp)
	copy(packet[headerSize:], payload)
	s.sequence++
	return s.port.sendPacket(packet, packetOrigin{id: s.id}, s.format.Clock)
}

// Run sends the frames of source at fixed deadlines until ctx ends. It drops the frames of deadlines
// that it missed by more than maxCatchUp.
func (s *Stream) Run(ctx context.Context, source Source) {
	var frame [maxPacketBytes - headerSize]byte
	deadline := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}

		// The port counts the error; the next frame may succeed.
		_ = s.Send(frame[:source.Next(frame[:])])
		deadline = deadline.Add(s.format.Frame)
		late := time.Since(deadline)
		if late > maxCatchUp {
			missed := late / s.format.Frame
			s.skipFrames(uint32(missed))
			deadline = deadline.Add(missed * s.format.Frame)
		}

		timer.Reset(time.Until(deadline))
	}
}

// maxCatchUp is the largest delay that a stream makes up for by sending frames faster.
const maxCatchUp = 200 * time.Millisecond

func (s *Stream) skipFrames(frames uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timestamp += frames * s.format.frameSamples()
	s.inSilence = true
}
