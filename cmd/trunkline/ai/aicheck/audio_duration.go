package aicheck

import (
	"errors"
	"time"

	"trunkline/internal/aiprotocol"
)

var (
	errHalfSample = errors.New("an odd number of bytes: half a sample")
	errNoPacket   = errors.New("no opus packet")
)

// audioDuration returns the duration of a chunk of audio.
func audioDuration(f aiprotocol.Format, audio []byte) (time.Duration, error) {
	switch f.Encoding {
	case aiprotocol.Opus:
		return opusDuration(audio)
	case aiprotocol.PCM16:
		if len(audio)%2 != 0 {
			return 0, errHalfSample
		}
	}
	return time.Duration(len(audio)) * aiprotocol.FrameDuration / time.Duration(f.FrameBytes()), nil
}

// opusDuration returns the duration that an opus packet declares (RFC 6716, 3.1).
func opusDuration(packet []byte) (time.Duration, error) {
	const maxDuration = 120 * time.Millisecond
	if len(packet) == 0 {
		return 0, errNoPacket
	}

	var frameDuration time.Duration
	switch config := packet[0] >> 3; {
	case config < 12: // SILK
		frameDuration = []time.Duration{10, 20, 40, 60}[config%4] * time.Millisecond
	case config < 16: // hybrid
		frameDuration = []time.Duration{10, 20}[config%2] * time.Millisecond
	default: // CELT
		frameDuration = 2500 * time.Microsecond << (config % 4)
	}

	count := 1
	switch code := packet[0] & 3; {
	case code == 3 && len(packet) < 2:
		return 0, errNoPacket
	case code == 3:
		count = int(packet[1] & 0x3f)
	case code != 0:
		count = 2
	}

	total := frameDuration * time.Duration(count)
	if count > 0 && total <= maxDuration {
		return total, nil
	}

	return 0, errNoPacket
}
