package audio

import (
	"fmt"

	"trunkline/telephony/g711"
)

// Decoder turns packets into samples.
type Decoder interface {
	// Decode appends the packet's samples.
	Decode(pcm []int16, packet []byte) ([]int16, error)
	// Conceal appends n samples in place of what was lost.
	Conceal(pcm []int16, n int) []int16
}

// Encoder turns samples into packets.
type Encoder interface {
	// Encode appends one frame to packet.
	Encode(packet []byte, pcm []int16) ([]byte, error)
}

// newDecoder gives samples at rate, which only opus can choose.
func newDecoder(f Format, rate int) (Decoder, error) {
	switch f.Encoding {
	case Opus:
		return newOpusDecoder(rate)
	case ULaw:
		return &waveform{decodeSamples: g711.ULaw().Decode, hide: newConcealer(rate)}, nil
	case ALaw:
		return &waveform{decodeSamples: g711.ALaw().Decode, hide: newConcealer(rate)}, nil
	case PCM16:
		return &waveform{decodeSamples: linear{}.decode, hide: newConcealer(rate)}, nil
	}
	return nil, fmt.Errorf("audio: no decoder for %s", f.Encoding)
}

// newEncoder takes samples at rate, which only opus can choose.
func newEncoder(f Format, rate int) (Encoder, error) {
	switch f.Encoding {
	case Opus:
		return newOpusEncoder(rate)
	case ULaw:
		return g711.ULaw(), nil
	case ALaw:
		return g711.ALaw(), nil
	case PCM16:
		return linear{}, nil
	}
	return nil, fmt.Errorf("audio: no encoder for %s", f.Encoding)
}

// waveform decodes what has no memory, and conceals by repetition.
type waveform struct {
	decodeSamples func(pcm []int16, packet []byte) []int16
	hide          *concealer
}

// Decode implements Decoder.
func (w *waveform) Decode(pcm []int16, packet []byte) ([]int16, error) {
	begin := len(pcm)
	pcm = w.decodeSamples(pcm, packet)
	w.hide.heard(pcm[begin:])
	return pcm, nil
}

// Conceal implements Decoder.
func (w *waveform) Conceal(pcm []int16, n int) []int16 { return w.hide.conceal(pcm, n) }
