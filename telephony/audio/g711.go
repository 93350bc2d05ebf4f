package audio

// G.711, as ITU-T G.191 computes it: samples below zero are inverted, not
// negated, so that the code of a sample depends on its upper 14 bits (mu-law)
// or 12 bits (A-law) alone. The tables are made of that.

// companding is one of the two laws as tables.
type companding struct {
	linear *[256]int16
	code   []byte // by sample >> shift
	shift  uint
}

var (
	muLaw = newCompanding(expandULaw, compressULaw, 2)
	aLaw  = newCompanding(expandALaw, compressALaw, 4)
)

func newCompanding(expand func(byte) int16, compress func(int16) byte, shift uint) *companding {
	c := &companding{linear: new([256]int16), code: make([]byte, 1<<(16-shift)), shift: shift}
	for i := range c.linear {
		c.linear[i] = expand(byte(i))
	}
	for i := range c.code {
		c.code[i] = compress(int16(uint16(i) << shift))
	}
	return c
}

// Decode implements half of Decoder.
func (c *companding) decode(pcm []int16, packet []byte) []int16 {
	for _, b := range packet {
		pcm = append(pcm, c.linear[b])
	}
	return pcm
}

// Encode implements Encoder.
func (c *companding) Encode(packet []byte, pcm []int16) ([]byte, error) {
	for _, s := range pcm {
		packet = append(packet, c.code[uint16(s)>>c.shift])
	}
	return packet, nil
}

func compressULaw(s int16) byte {
	const bias, most = 33, 0x1fff
	magnitude, sign := int(s), 0x80
	if s < 0 {
		magnitude, sign = int(^s), 0
	}
	magnitude = min(magnitude>>2+bias, most)
	segment := 1
	for rest := magnitude >> 6; rest != 0; rest >>= 1 {
		segment++
	}
	return byte((8-segment)<<4 | (0xf - magnitude>>segment&0xf) | sign)
}

func expandULaw(code byte) int16 {
	inverted := int(^code)
	exponent := inverted >> 4 & 7
	step := 8 << exponent
	magnitude := 0x80<<exponent + step*(inverted&0xf) + step/2 - 4*33
	if code < 0x80 {
		return int16(-magnitude)
	}
	return int16(magnitude)
}

func compressALaw(s int16) byte {
	magnitude, sign := int(s), 0x80
	if s < 0 {
		magnitude, sign = int(^s), 0
	}
	magnitude >>= 4
	if magnitude > 15 {
		exponent := 1
		for ; magnitude > 31; magnitude >>= 1 {
			exponent++
		}
		magnitude += exponent<<4 - 16
	}
	return byte(magnitude|sign) ^ 0x55
}

func expandALaw(code byte) int16 {
	plain := int(code ^ 0x55)
	exponent, magnitude := plain>>4&7, plain&0xf
	if exponent > 0 {
		magnitude += 16
	}
	magnitude = magnitude<<4 + 8
	if exponent > 1 {
		magnitude <<= exponent - 1
	}
	if code < 0x80 {
		return int16(-magnitude)
	}
	return int16(magnitude)
}
