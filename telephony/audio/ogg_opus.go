package audio

import (
	"bytes"
	"fmt"
	"io"
)

// oggOpus is a WAV file as Ogg Opus.
type oggOpus struct {
	wav            *WAV
	encoder        *opusEncoder
	ogg            oggWriter
	encoded        bytes.Buffer // that is not read yet
	pcm            []int16      // of a frame
	preSkipSamples int          // samples of a channel that the decoder skips at the start
	ended          bool
}

// oggFrameMillis is the length of a frame: short enough for speech, and long enough that the container's
// headers are little beside it.
const oggFrameMillis = 60

// NewOggOpus returns a reader of a WAV file's samples in Opus, in an Ogg file (RFC 7845). Rates are
// those of Opus: 8, 12, 16, 24 and 48 kHz. It encodes as it is read.
func NewOggOpus(wav *WAV) (io.Reader, error) {
	encoder, err := newOpusChannelsEncoder(wav.Rate, wav.Channels, oggFrameMillis)
	if err != nil {
		return nil, err
	}

	o := &oggOpus{wav: wav, encoder: encoder, pcm: make([]int16, wav.Channels*wav.Rate*oggFrameMillis/1000),
		preSkipSamples: encoder.encoder.Lookahead()}
	o.ogg, err = newOggWriter(&o.encoded, wav, o.ticks(o.preSkipSamples))
	if err != nil {
		return nil, fmt.Errorf("audio: ogg: %w", err)
	}

	return o, nil
}

// ticks returns samples of a channel as samples at 48 kHz.
func (o *oggOpus) ticks(samples int) int { return samples * (opusRate / 1000) / (o.wav.Rate / 1000) }

// Read implements io.Reader.
func (o *oggOpus) Read(p []byte) (int, error) {
	for o.encoded.Len() == 0 && !o.ended {
		if err := o.encodeNext(); err != nil {
			return 0, err
		}
	}
	return o.encoded.Read(p) // io.EOF at the end
}

// encodeNext encodes a frame; at the end of the WAV file so much more that its last sample is heard.
func (o *oggOpus) encodeNext() error {
	n, err := o.wav.Read(o.pcm)
	if err != nil {
		return err
	}

	frame := len(o.pcm) / o.wav.Channels
	if n == len(o.pcm) {
		return o.write(frame)
	}

	clear(o.pcm[n:])
	rest := n/o.wav.Channels + o.preSkipSamples
	if rest > frame {
		if err := o.write(frame); err != nil {
			return err
		}
		clear(o.pcm)
		rest -= frame
	}

	if err := o.write(rest); err != nil {
		return err
	}

	o.ended = true
	return o.ogg.Close()
}

// write encodes the frame in pcm, of which samples of each channel are heard.
func (o *oggOpus) write(samples int) error {
	packet, err := o.encoder.Encode(nil, o.pcm)
	if err != nil {
		return err
	}
	return o.ogg.WritePacket(packet, o.ticks(samples))
}
