package audio

import "math"

// concealer replaces lost samples by repeating the last pitch period, on the principle of G.711
// Appendix I: 10 ms at full level, then a fade to silence at 60 ms. The first 4 ms after a loss are
// blended with the concealment.
type concealer struct {
	rate      int
	history   []int16 // the last 40 ms decoded, oldest first
	period    []int16 // the repeated pitch period; empty outside a loss
	position  int     // index of the next sample in period
	concealed int     // samples concealed since the loss began
	blend     []int16 // continuation of the concealment, for blending; reused
}

func newConcealer(rate int) *concealer {
	return &concealer{
		rate: rate, history: make([]int16, rate/25),
		period: make([]int16, 0, rate/66+1), blend: make([]int16, 0, rate/250),
	}
}

// recordDecoded records decoded samples. After a loss it blends their beginning with the concealment.
func (c *concealer) recordDecoded(pcm []int16) {
	if c.concealed > 0 && len(pcm) > 0 {
		n := min(len(pcm), cap(c.blend))
		c.blend = c.appendConcealment(c.blend[:0], n)
		for i, old := range c.blend {
			pcm[i] = int16((int(pcm[i])*(i+1) + int(old)*(n-i-1)) / n)
		}
		c.concealed = 0
	}
	c.recordHistory(pcm)
}

func (c *concealer) recordHistory(pcm []int16) {
	if len(pcm) >= len(c.history) {
		copy(c.history, pcm[len(pcm)-len(c.history):])
		return
	}
	copy(c.history, c.history[len(pcm):])
	copy(c.history[len(c.history)-len(pcm):], pcm)
}

// concealAndRecord appends n concealment samples to pcm.
func (c *concealer) concealAndRecord(pcm []int16, n int) []int16 {
	if c.concealed == 0 {
		lag := c.pitch()
		c.period = append(c.period[:0], c.history[len(c.history)-lag:]...)
		c.position = 0
	}
	begin := len(pcm)
	pcm = c.appendConcealment(pcm, n)
	c.recordHistory(pcm[begin:])
	return pcm
}

func (c *concealer) appendConcealment(pcm []int16, n int) []int16 {
	full, silent := c.rate/100, c.rate*60/1000
	for range n {
		var s int
		if c.concealed < silent {
			s = int(c.period[c.position])
			if c.concealed > full {
				s = s * (silent - c.concealed) / (silent - full)
			}
			c.concealed++
		}

		pcm = append(pcm, int16(s))
		c.position = (c.position + 1) % len(c.period)
	}

	return pcm
}

// pitch returns the lag, between 2.5 and 15 ms, with the highest correlation of the last 20 ms.
func (c *concealer) pitch() int {
	shortest, longest := c.rate/400, c.rate/66
	step := max(1, c.rate/8000) // the resolution of 8 kHz is sufficient
	end := len(c.history)
	window := end - longest
	best, bestScore := longest, math.Inf(-1)

	for lag := shortest; lag <= longest; lag += step {
		var product, energy float64
		for i := end - window/2; i < end; i += step {
			product += float64(c.history[i]) * float64(c.history[i-lag])
			energy += float64(c.history[i-lag]) * float64(c.history[i-lag])
		}

		if energy > 0 {
			score := product / math.Sqrt(energy)
			if score > bestScore {
				best, bestScore = lag, score
			}
		}
	}

	return best
}
