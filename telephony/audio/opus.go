package audio

import (
	"fmt"
	"io"
	"time"

	"github.com/thesyncim/gopus"
	"github.com/thesyncim/gopus/container/ogg"
)

const (
	opusRate       = 48000 // Hz
	maxOpusMillis  = 120   // ms of audio in one packet (RFC 6716, section 3.2)
	maxOpusBytes   = 1500  // bytes in one packet, bounded by the RTP packet
	opusComplexity = 5     // encoder complexity, 0 to 10: sufficient for telephony at half the CPU cost of 10
	kilobit        = 1000
)

// opusSamples returns a packet's duration in samples at 48 kHz from its first bytes (RFC 6716, section
// 3.1), or 0 if the packet is not valid.
func opusSamples(packet []byte) int {
	if len(packet) == 0 || len(packet) > maxOpusBytes {
		return 0
	}

	config := int(packet[0] >> 3)
	var frame int // samples at 48 kHz
	switch {
	case config < 12: // SILK: 10, 20, 40, 60 ms
		frame = [...]int{480, 960, 1920, 2880}[config&3]
	case config < 16: // hybrid: 10, 20 ms
		frame = 480 << (config & 1)
	default: // CELT: 2.5, 5, 10, 20 ms
		frame = 120 << (config & 3)
	}

	frames := 1
	switch packet[0] & 3 {
	case 1, 2:
		frames = 2
	case 3:
		if len(packet) < 2 {
			return 0
		}
		frames = int(packet[1] & 0x3f)
	}

	samples := frames * frame
	if samples <= opusRate*maxOpusMillis/1000 {
		return samples
	}

	return 0
}

// opusDecoder decodes to mono samples at any rate that opus supports.
type opusDecoder struct {
	decoder *gopus.Decoder
	rate    int
	scratch []int16 // sized for the longest packet
}

func newOpusDecoder(rate int) (*opusDecoder, error) {
	decoder, err := gopus.NewDecoder(gopus.DefaultDecoderConfig(rate, 1))
	if err != nil {
		return nil, fmt.Errorf("audio: opus decoder at %d Hz: %w", rate, err)
	}
	return &opusDecoder{decoder: decoder, rate: rate, scratch: make([]int16, rate*maxOpusMillis/1000)}, nil
}

// Decode implements Decoder.
func (d *opusDecoder) Decode(pcm []int16, packet []byte) ([]int16, error) {
	if opusSamples(packet) == 0 {
		return pcm, fmt.Errorf("audio: not an opus packet")
	}
	n, err := d.decoder.DecodeInt16(packet, d.scratch)
	if err != nil {
		return pcm, fmt.Errorf("audio: decoding opus: %w", err)
	}
	return append(pcm, d.scratch[:n]...), nil
}

// Conceal implements Decoder with opus's own loss concealment.
func (d *opusDecoder) Conceal(pcm []int16, n int) []int16 {
	for n > 0 {
		decoded, err := d.decoder.DecodeInt16(nil, d.scratch[:min(len(d.scratch), FrameSamples(d.rate))])
		if err != nil || decoded == 0 {
			return append(pcm, d.silence(n)...)
		}

		decoded = min(decoded, n)
		pcm = append(pcm, d.scratch[:decoded]...)
		n -= decoded
	}

	return pcm
}

func (d *opusDecoder) silence(n int) []int16 {
	n = min(n, len(d.scratch))
	clear(d.scratch[:n])
	return d.scratch[:n]
}

// opusEncoder encodes a frame of samples into one packet.
type opusEncoder struct {
	encoder *gopus.Encoder
	scratch []byte // sized for the largest packet
}

func newOpusEncoder(rate int) (*opusEncoder, error) {
	return newOpusChannelsEncoder(rate, 1, int(FrameDuration/time.Millisecond))
}

// newOpusChannelsEncoder returns an encoder of interleaved channels in frames of frameMillis.
func newOpusChannelsEncoder(rate, channels, frameMillis int) (*opusEncoder, error) {
	encoder, err := gopus.NewEncoder(
		gopus.EncoderConfig{SampleRate: rate, Channels: channels, Application: gopus.ApplicationVoIP})
	if err != nil {
		return nil, fmt.Errorf("audio: opus encoder at %d Hz: %w", rate, err)
	}

	if err := encoder.SetBitrate(channels * opusBitrate(rate)); err != nil {
		return nil, fmt.Errorf("audio: opus bit rate: %w", err)
	}
	if err := encoder.SetComplexity(opusComplexity); err != nil {
		return nil, fmt.Errorf("audio: opus complexity: %w", err)
	}
	if err := encoder.SetFrameSize(rate * frameMillis / 1000); err != nil {
		return nil, fmt.Errorf("audio: opus frame size: %w", err)
	}

	return &opusEncoder{encoder: encoder, scratch: make([]byte, maxOpusBytes)}, nil
}

// oggWriter writes packets into an Ogg file. It is here, because only this file imports the library.
type oggWriter = *ogg.Writer

// newOggWriter writes the header of an Ogg file with the channels of a WAV file. skip are the samples at 48 kHz that a
// decoder skips.
func newOggWriter(w io.Writer, wav *WAV, skip int) (oggWriter, error) {
	return ogg.NewWriterWithConfig(w, ogg.WriterConfig{
		SampleRate: uint32(wav.Rate), Channels: uint8(wav.Channels), PreSkip: uint16(skip), StreamCount: 1,
		CoupledCount: uint8(wav.Channels - 1),
	})
}

// opusBitrate returns the bit rate in bit/s for speech at a sampling rate in Hz.
func opusBitrate(rate int) int {
	if rate <= 16000 {
		return 24 * kilobit
	}
	return 40 * kilobit
}

// Encode implements Encoder.
func (e *opusEncoder) Encode(packet []byte, pcm []int16) ([]byte, error) {
	n, err := e.encoder.EncodeInt16(pcm, e.scratch)
	if err != nil {
		return packet, fmt.Errorf("audio: encoding opus: %w", err)
	}
	return append(packet, e.scratch[:n]...), nil
}
