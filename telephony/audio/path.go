package audio

import "fmt"

// Path converts packets of one format into frames of another: it decodes, resamples and encodes. Opus
// codecs decode and encode at the other side's rate where they support it.
type Path struct {
	from, to  Format
	decoder   Decoder
	resampler *Resampler // nil if the rates are equal
	encoder   Encoder
	inRate    int     // decoder's rate in Hz
	outRate   int     // encoder's rate in Hz
	decoded   []int16 // samples waiting to be resampled; reused
	ready     []int16 // samples waiting to be encoded, at outRate
	last      Level
}

// Level is the loudness of a frame: the mean magnitude of its samples.
type Level int

// NewPath returns a path between two formats.
func NewPath(from, to Format) (*Path, error) {
	for _, f := range [...]Format{from, to} {
		if err := f.Validate(); err != nil {
			return nil, err
		}
	}
	p := &Path{from: from, to: to, inRate: from.Rate, outRate: to.Rate}
	switch {
	case from.Encoding == Opus && to.Encoding != Opus:
		p.inRate = opusFits(to.Rate)
	case to.Encoding == Opus && from.Encoding != Opus:
		p.outRate = opusFits(from.Rate)
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
	p.ready = make([]int16, 0, 2*FrameSamples(p.outRate))
	return p, nil
}

// opusFits returns the rate, or the next higher rate that opus supports.
func opusFits(rate int) int {
	for _, known := range [...]int{8000, 12000, 16000, 24000} {
		if rate <= known {
			return known
		}
	}
	return opusRate
}

// Push decodes a packet. It conceals a packet that cannot be decoded and returns the error.
func (p *Path) Push(packet []byte) error {
	pcm, err := p.decoder.Decode(p.decoded[:0], packet)
	if err != nil {
		p.Missing(p.from.Samples(packet))
		return err
	}
	p.resample(pcm)
	return nil
}

// Missing conceals a number of samples of the incoming format's clock.
func (p *Path) Missing(samples int) {
	p.resample(p.decoder.Conceal(p.decoded[:0], samples*p.inRate/p.from.Rate))
}

// Silence adds a number of silent samples of the incoming format's clock, for audio that was never
// sent.
func (p *Path) Silence(samples int) {
	pcm := p.decoded[:0]
	for range samples * p.inRate / p.from.Rate {
		pcm = append(pcm, 0)
	}
	p.resample(pcm)
}

func (p *Path) resample(pcm []int16) {
	p.decoded = pcm[:0]
	if p.resampler == nil {
		p.ready = append(p.ready, pcm...)
		return
	}
	p.ready = p.resampler.Process(p.ready, pcm)
}

// Wants returns the number of samples of the incoming clock that are missing for a complete frame.
func (p *Path) Wants() int {
	short := FrameSamples(p.outRate) - len(p.ready)
	if short <= 0 {
		return 0
	}
	return (short*p.from.Rate + p.outRate - 1) / p.outRate
}

// Frame appends one encoded frame to packet. It may be called only when Wants returns 0.
func (p *Path) Frame(packet []byte) ([]byte, error) {
	n := FrameSamples(p.outRate)
	if len(p.ready) < n {
		return packet, fmt.Errorf("audio: a frame of %d samples, but %d are there", n, len(p.ready))
	}
	p.last = loudness(p.ready[:n])
	packet, err := p.encoder.Encode(packet, p.ready[:n])
	p.ready = p.ready[:copy(p.ready, p.ready[n:])]
	return packet, err
}

// Level returns the loudness of the last frame.
func (p *Path) Level() Level { return p.last }

func loudness(pcm []int16) Level {
	var sum int
	for i := 0; i < len(pcm); i += 4 { // every fourth sample is sufficient
		s := int(pcm[i])
		sum += max(s, -s)
	}
	return Level(sum / ((len(pcm) + 3) / 4))
}
