package audio

import (
	"fmt"
	"math"
)

// Resampler changes the sampling rate with a polyphase FIR filter. Its pass band ends at 0.425 of the
// lower rate (3400 Hz of 8000), its stop band begins at 0.575 (4600 Hz) with about -90 dB, and its
// delay is 2.5 ms at 8000 Hz.
type Resampler struct {
	upFactor, downFactor int         // output rate / input rate, reduced
	phases               [][]float32 // taps of each of the up phases, oldest sample first
	taps                 int         // number of taps in one phase
	history              []float32   // the last taps-1 samples, then the new ones
	phase                int         // phase of the next output sample
	trailingZeros        int         // number of zero samples at the end of history
}

const (
	tapsPerRatio = 40  // filter taps for each step between the rates
	kaiserBeta   = 9.0 // about 90 dB attenuation in the stop band
)

// NewResampler returns a resampler between two rates in Hz. Rates are multiples of 4000 from 8000 to
// 48000.
func NewResampler(from, to int) (*Resampler, error) {
	_, known := tapsFor(from, to)
	if !known {
		return nil, fmt.Errorf("audio: no resampler from %d to %d Hz", from, to)
	}

	divisor := gcd(from, to)
	r := &Resampler{upFactor: to / divisor, downFactor: from / divisor}
	r.taps, _ = tapsFor(from, to)
	prototype := lowPass(r.taps*r.upFactor, 0.5/float64(max(r.upFactor, r.downFactor)), float64(r.upFactor))

	for phase := range r.upFactor {
		taps := make([]float32, r.taps)
		for i := range taps {
			taps[len(taps)-1-i] = float32(prototype[i*r.upFactor+phase])
		}
		r.phases = append(r.phases, taps)
	}

	r.history = make([]float32, r.taps-1, r.taps-1+2*FrameSamples(from))
	r.trailingZeros = r.taps
	return r, nil
}

// tapsFor returns the number of taps in each phase.
func tapsFor(from, to int) (taps int, known bool) {
	for _, rate := range [...]int{from, to} {
		if rate < 8000 || rate > 48000 || rate%4000 != 0 {
			return 0, false
		}
	}
	divisor := gcd(from, to)
	up, down := to/divisor, from/divisor
	return (tapsPerRatio*max(up, down) + up - 1) / up, true
}

// Process appends the samples of in, at the new rate, to out.
func (r *Resampler) Process(out, in []int16) []int16 {
	for _, s := range in {
		r.history = append(r.history, float32(s))
		r.trailingZeros++
		if s != 0 {
			r.trailingZeros = 0
		}
	}

	start := 0 // oldest input sample of the next output sample
	for start+r.taps <= len(r.history) {
		// Of silence, the filter's result is known.
		if r.trailingZeros >= len(r.history)-start {
			out = append(out, 0)
		} else {
			out = append(out, roundToInt16(dot(r.phases[r.phase], r.history[start:start+r.taps])))
		}

		r.phase += r.downFactor
		start += r.phase / r.upFactor
		r.phase %= r.upFactor
	}

	// Drop the samples before the filter's window.
	kept := copy(r.history, r.history[start:])
	r.history = r.history[:kept]
	return out
}

// dot returns the dot product of two slices of the same length.
func dot(a, b []float32) float32 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float32

	i := 0
	for ; i+4 <= len(a) && i+4 <= len(b); i += 4 {
		x, y := a[i:i+4:i+4], b[i:i+4:i+4]
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
	}

	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}

	return s0 + s1 + s2 + s3
}

func roundToInt16(v float32) int16 {
	switch {
	case v >= math.MaxInt16:
		return math.MaxInt16
	case v <= math.MinInt16:
		return math.MinInt16
	case v < 0:
		return int16(v - 0.5)
	}
	return int16(v + 0.5)
}

// lowPass returns a Kaiser-windowed sinc filter with n taps and its cutoff in cycles per sample.
func lowPass(n int, cutoff, gain float64) []float64 {
	taps := make([]float64, n)
	var sum float64
	for i := range taps {
		x := float64(i) - float64(n-1)/2
		sinc := 2 * cutoff
		if x != 0 {
			sinc = math.Sin(2*math.Pi*cutoff*x) / (math.Pi * x)
		}

		edge := 2*float64(i)/float64(n-1) - 1
		taps[i] = sinc * bessel0(kaiserBeta*math.Sqrt(1-edge*edge)) / bessel0(kaiserBeta)
		sum += taps[i]
	}

	for i := range taps {
		taps[i] *= gain / sum
	}

	return taps
}

// bessel0 returns the modified Bessel function of the first kind, order 0.
func bessel0(x float64) float64 {
	sum, term := 1.0, 1.0
	for k := 1.0; term > sum*1e-12; k++ {
		term *= (x / 2 / k) * (x / 2 / k)
		sum += term
	}
	return sum
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
