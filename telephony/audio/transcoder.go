package audio

import "fmt"

// Transcoder converts packets of one format into frames of another: it decodes, resamples and encodes. Opus
// codecs decode and encode at the other side's rate where they support it.
type Transcoder struct {
	from, to  Format
	decoder   Decoder
	resampler *Resampler // nil if the rates are equal
	encoder   Encoder
	inRate    int     // decoder's rate in Hz
	outRate   int     // encoder's rate in Hz
	decoded   []int16 // samples waiting to be resampled; reused
	resampled []int16 // samples waiting to be encoded, at outRate
	lastLevel Level
}

// Level is the loudness of a frame: the mean magnitude of its samples.
type Level int

// NewTranscoder returns a transcoder between two formats.
func NewTranscoder(from, to Format) (*Transcoder, error) {
	for _, f := range [...]Format{from, to} {
		if err := f.Validate(); err != nil {
			return nil, err
		}
	}
	p := &Transcoder{from: from, to: to, inRate: from.Rate, outRate: to.Rate}
	switch {
	case from.Encoding == Opus && to.Encoding != Opus:
		p.inRate = opusRateFor(to.Rate)
	case to.Encoding == Opus && from.Encoding != Opus:
		p.outRate = opusRateFor(from.Rate)
	}
	var err error
	if p.decoder, err = newDecoder(from, p.inRate); err != nil {
		return nil, err
	}
	if p.encoder, err = newEncoder(to, p.outRate); err != nil {
		return nil, err
	}
	if p.inRate != p.outRate {
		if p.resampler, err = NewResampler(p.inRate, p.outRate); err != nil {
			return nil, err
		}
	}
	p.decoded = make([]int16, 0, 2*FrameSamples(p.inRate))
	p.resampled = make([]int16, 0, 2*FrameSamples(p.outRate))
	return p, nil
}

// opusRateFor returns the rate, or the next higher rate that opus supports.
func opusRateFor(rate int) int {
	for _, known := range [...]int{8000, 12000, 16000, 24000} {
		if rate <= known {
			return known
		}
	}
	return opusRate
}

// Decode decodes a packet. It conceals a packet that cannot be decoded and returns the error.
func (p *Transcoder) Decode(packet []byte) error {
	pcm, err := p.decoder.Decode(p.decoded[:0], packet)
	if err != nil {
		p.Conceal(p.from.Samples(packet))
		return err
	}
	p.resample(pcm)
	return nil
}

// Conceal conceals a number of samples of the incoming format's clock.
func (p *Transcoder) Conceal(samples int) {
	p.resample(p.decoder.Conceal(p.decoded[:0], samples*p.inRate/p.from.Rate))
}

// AddSilence adds a number of silent samples of the incoming format's clock, for audio that was never
// sent.
func (p *Transcoder) AddSilence(samples int) {
	pcm := p.decoded[:0]
	for range samples * p.inRate / p.from.Rate {
		pcm = append(pcm, 0)
	}
	p.resample(pcm)
}

func (p *Transcoder) resample(pcm []int16) {
	p.decoded = pcm[:0]
	if p.resampler == nil {
		p.resampled = append(p.resampled, pcm...)
		return
	}
	p.resampled = p.resampler.Process(p.resampled, pcm)
}

// SamplesNeeded returns the number of samples of the incoming clock that are missing for a complete frame.
func (p *Transcoder) SamplesNeeded() int {
	short := FrameSamples(p.outRate) - len(p.resampled)
	if short <= 0 {
		return 0
	}
	return (short*p.from.Rate + p.outRate - 1) / p.outRate
}

// EncodeFrame appends one encoded frame to packet. It may be called only when SamplesNeeded returns 0.
func (p *Transcoder) EncodeFrame(packet []byte) ([]byte, error) {
	n := FrameSamples(p.outRate)
	if len(p.resampled) < n {
		return packet, fmt.Errorf("audio: frame needs %d samples, %d available", n, len(p.resampled))
	}
	p.lastLevel = loudness(p.resampled[:n])
	packet, err := p.encoder.Encode(packet, p.resampled[:n])
	p.resampled = p.resampled[:copy(p.resampled, p.resampled[n:])]
	return packet, err
}

// Level returns the loudness of the last frame.
func (p *Transcoder) Level() Level { return p.lastLevel }

func loudness(pcm []int16) Level {
	var sum int
	for i := 0; i < len(pcm); i += 4 { // every fourth sample is sufficient
		s := int(pcm[i])
		sum += max(s, -s)
	}
	return Level(sum / ((len(pcm) + 3) / 4))
}
