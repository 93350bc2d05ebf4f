package audio

import "math"

// tone is n samples of a sine.
func tone(hz float64, rate, n int, amplitude float64) []int16 {
	pcm := make([]int16, n)
	for i := range pcm {
		pcm[i] = int16(math.Round(amplitude * math.Sin(2*math.Pi*hz*float64(i)/float64(rate))))
	}
	return pcm
}

// fitTone finds the sine of hz that is in pcm: its amplitude, and how far it
// stands out from all else, in dB.
func fitTone(pcm []int16, hz float64, rate int) (amplitude, snr float64) {
	var sin, cos, energy float64
	for i, s := range pcm {
		phase := 2 * math.Pi * hz * float64(i) / float64(rate)
		sin += float64(s) * math.Sin(phase)
		cos += float64(s) * math.Cos(phase)
	}

	n := float64(len(pcm))
	sin, cos = 2*sin/n, 2*cos/n
	for i, s := range pcm {
		phase := 2 * math.Pi * hz * float64(i) / float64(rate)
		rest := float64(s) - sin*math.Sin(phase) - cos*math.Cos(phase)
		energy += rest * rest
	}

	amplitude = math.Hypot(sin, cos)
	return amplitude, 10 * math.Log10(amplitude*amplitude/2/(energy/n))
}
