package audio

import "fmt"

// Transcoder converts packets of one format into frames of another: it decodes, resamples and encodes. Opus
// codecs decode and encode at the other side's rate where they support it.
type Transcoder struct {
	from, to         Format
	decoder          Decoder
	resampler        *Resampler // nil if the rates are equal
	encoder          Encoder
	inRate           int     // decoder's rate in Hz
	outRate          int     // encoder's rate in Hz
	decodedSamples   []int16 // samples waiting to be resampled; reused
	resampledSamples []int16 // samples waiting to be encoded, at outRate
	lastLevel        Level   // of the last frame encoded
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

	t := &Transcoder{from: from, to: to, inRate: from.Rate, outRate: to.Rate}
	switch {
	case from.Encoding == Opus && to.Encoding != Opus:
		t.inRate = opusRateFor(to.Rate)
	case to.Encoding == Opus && from.Encoding != Opus:
		t.outRate = opusRateFor(from.Rate)
	}

	var err error
	t.decoder, err = newDecoder(from, t.inRate)
	if err != nil {
		return nil, err
	}

	t.encoder, err = newEncoder(to, t.outRate)
	if err != nil {
		return nil, err
	}

	if t.inRate != t.outRate {
		t.resampler, err = NewResampler(t.inRate, t.outRate)
		if err != nil {
			return nil, err
		}
	}

	t.decodedSamples = make([]int16, 0, 2*FrameSamples(t.inRate))
	t.resampledSamples = make([]int16, 0, 2*FrameSamples(t.outRate))
	return t, nil
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
func (t *Transcoder) Decode(packet []byte) error {
	pcm, err := t.decoder.Decode(t.decodedSamples[:0], packet)
	if err != nil {
		t.Conceal(t.from.Samples(packet))
		return err
	}
	t.resample(pcm)
	return nil
}

// Conceal conceals a number of samples of the incoming format's clock.
func (t *Transcoder) Conceal(samples int) {
	t.resample(t.decoder.Conceal(t.decodedSamples[:0], samples*t.inRate/t.from.Rate))
}

// AddSilence adds a number of silent samples of the incoming format's clock, for audio that was never
// sent.
func (t *Transcoder) AddSilence(samples int) {
	pcm := t.decodedSamples[:0]
	for range samples * t.inRate / t.from.Rate {
		pcm = append(pcm, 0)
	}
	t.resample(pcm)
}

func (t *Transcoder) resample(pcm []int16) {
	t.decodedSamples = pcm[:0]
	if t.resampler == nil {
		t.resampledSamples = append(t.resampledSamples, pcm...)
		return
	}
	t.resampledSamples = t.resampler.Process(t.resampledSamples, pcm)
}

// SamplesNeeded returns the number of samples of the incoming clock that are missing for a complete frame.
func (t *Transcoder) SamplesNeeded() int {
	short := FrameSamples(t.outRate) - len(t.resampledSamples)
	if short <= 0 {
		return 0
	}
	return (short*t.from.Rate + t.outRate - 1) / t.outRate
}

// EncodeFrame appends one encoded frame to packet. It may be called only when SamplesNeeded returns 0.
func (t *Transcoder) EncodeFrame(packet []byte) ([]byte, error) {
	n := FrameSamples(t.outRate)
	if len(t.resampledSamples) < n {
		return packet, fmt.Errorf("audio: frame needs %d samples, %d available", n, len(t.resampledSamples))
	}
	t.lastLevel = loudness(t.resampledSamples[:n])
	packet, err := t.encoder.Encode(packet, t.resampledSamples[:n])
	t.resampledSamples = t.resampledSamples[:copy(t.resampledSamples, t.resampledSamples[n:])]
	return packet, err
}

// Level returns the loudness of the last frame.
func (t *Transcoder) Level() Level { return t.lastLevel }

func loudness(pcm []int16) Level {
	var sum int
	for i := 0; i < len(pcm); i += 4 { // every fourth sample is sufficient
		s := int(pcm[i])
		sum += max(s, -s)
	}
	return Level(sum / ((len(pcm) + 3) / 4))
}
