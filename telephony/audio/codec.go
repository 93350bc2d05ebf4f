package audio

import (
	"fmt"

	"trunkline/telephony/g711"
)

// Decoder decodes packets of one format into samples.
type Decoder interface {
	// Decode appends the packet's samples to pcm. After an error, which tells of an invalid packet, it returns pcm as
	// it was.
	Decode(pcm []int16, packet []byte) ([]int16, error)
	// Conceal appends n samples that replace lost audio to pcm.
	Conceal(pcm []int16, n int) []int16
}

// Encoder encodes samples into packets of one format.
type Encoder interface {
	// Encode appends the encoded samples, which are one frame, to packet. After an error it returns packet as it was.
	Encode(packet []byte, pcm []int16) ([]byte, error)
}

// newDecoder returns a decoder whose samples have the given rate in Hz. Only opus can decode to a rate
// other than the format's.
func newDecoder(f Format, rate int) (Decoder, error) {
	switch f.Encoding {
	case Opus:
		return newOpusDecoder(rate)
	case ULaw:
		return &statelessDecoder{decodeSamples: g711.ULaw().Decode, lossConcealer: newConcealer(rate)}, nil
	case ALaw:
		return &statelessDecoder{decodeSamples: g711.ALaw().Decode, lossConcealer: newConcealer(rate)}, nil
	case PCM16:
		return &statelessDecoder{decodeSamples: pcm16Codec{}.appendSamples, lossConcealer: newConcealer(rate)}, nil
	}

	return nil, fmt.Errorf("audio: no decoder for %s", f.Encoding)
}

// newEncoder returns an encoder for samples of the given rate in Hz. Only opus accepts a rate other
// than the format's.
func newEncoder(f Format, rate int) (Encoder, error) {
	switch f.Encoding {
	case Opus:
		return newOpusEncoder(rate)
	case ULaw:
		return g711.ULaw(), nil
	case ALaw:
		return g711.ALaw(), nil
	case PCM16:
		return pcm16Codec{}, nil
	}

	return nil, fmt.Errorf("audio: no encoder for %s", f.Encoding)
}

// statelessDecoder is a decoder for codecs without state between packets. It conceals losses by repetition.
type statelessDecoder struct {
	decodeSamples func(pcm []int16, packet []byte) []int16 // appends to pcm
	lossConcealer *concealer
}

// Decode implements Decoder.
func (d *statelessDecoder) Decode(pcm []int16, packet []byte) ([]int16, error) {
	begin := len(pcm)
	pcm = d.decodeSamples(pcm, packet)
	d.lossConcealer.recordDecoded(pcm[begin:])
	return pcm, nil
}

// Conceal implements Decoder.
func (d *statelessDecoder) Conceal(pcm []int16, n int) []int16 {
	return d.lossConcealer.concealAndRecord(pcm, n)
}
