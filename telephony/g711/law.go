package g711

// Law is one of the two laws.
type Law struct {
	samples [256]int16 // what each code stands for
	codes   []byte     // the code of a sample, by its upper bits
	shift   uint       // lower bits of a sample that its code does not depend on
}

var (
	uLawTables = newLaw(expandULaw, compressULaw, 2)
	aLawTables = newLaw(expandALaw, compressALaw, 4)
)

// ULaw returns mu-law (PCMU).
func ULaw() *Law { return uLawTables }

// ALaw returns A-law (PCMA).
func ALaw() *Law { return aLawTables }

func newLaw(expand func(byte) int16, compress func(int16) byte, shift uint) *Law {
	l := &Law{codes: make([]byte, 1<<(16-shift)), shift: shift}
	for i := range l.samples {
		l.samples[i] = expand(byte(i))
	}
	for i := range l.codes {
		l.codes[i] = compress(int16(uint16(i) << shift))
	}
	return l
}

// DecodeSample decodes one code.
func (l *Law) DecodeSample(code byte) int16 { return l.samples[code] }

// EncodeSample encodes one sample.
func (l *Law) EncodeSample(sample int16) byte { return l.codes[uint16(sample)>>l.shift] }

// Decode appends the samples of a packet to pcm.
func (l *Law) Decode(pcm []int16, packet []byte) []int16 {
	for _, code := range packet {
		pcm = append(pcm, l.samples[code])
	}
	return pcm
}

// Encode appends the codes of pcm to packet. It never fails.
func (l *Law) Encode(packet []byte, pcm []int16) ([]byte, error) {
	for _, sample := range pcm {
		packet = append(packet, l.codes[uint16(sample)>>l.shift])
	}
	return packet, nil
}

// Conversion is a table from the codes of one law to those of the other.
type Conversion [256]byte

var (
	uLawToALawTable = newConversion(uLawTables, aLawTables)
	aLawToULawTable = newConversion(aLawTables, uLawTables)
)

// ULawToALaw converts PCMU to PCMA.
func ULawToALaw() *Conversion { return uLawToALawTable }

// ALawToULaw converts PCMA to PCMU.
func ALawToULaw() *Conversion { return aLawToULawTable }

func newConversion(from, to *Law) *Conversion {
	var c Conversion
	for code := range c {
		c[code] = to.EncodeSample(from.DecodeSample(byte(code)))
	}
	return &c
}

// compressULaw returns the code of a sample.
func compressULaw(s int16) byte {
	const bias, maxMagnitude = 33, 0x1fff // a magnitude has 13 bits
	magnitude, sign := int(s), 0x80
	if s < 0 {
		magnitude, sign = int(^s), 0
	}

	magnitude = min(magnitude>>2+bias, maxMagnitude)
	segment := 1
	for rest := magnitude >> 6; rest != 0; rest >>= 1 {
		segment++
	}

	return byte((8-segment)<<4 | (0xf - magnitude>>segment&0xf) | sign)
}

// expandULaw returns the sample of a code.
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

// compressALaw returns the code of a sample.
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

// expandALaw returns the sample of a code.
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
