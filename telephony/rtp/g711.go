package rtp

import "math/bits"

// Conversion is from one law of G.711 to the other.
type Conversion int

// The conversions.
const (
	ULawToALaw Conversion = iota
	ALawToULaw
)

func (c Conversion) table() *[256]byte {
	if c == ULawToALaw {
		return &uLawToALaw
	}
	return &aLawToULaw
}

var (
	uLawToALaw = byteTable(func(b byte) byte { return EncodeALaw(DecodeULaw(b)) })
	aLawToULaw = byteTable(func(b byte) byte { return EncodeULaw(DecodeALaw(b)) })
)

func byteTable(f func(byte) byte) (table [256]byte) {
	for i := range table {
		table[i] = f(byte(i))
	}
	return table
}

// The laws of ITU-T G.711 on 16-bit samples: a sign, a segment of three bits
// that doubles with each step, and four bits within it.
const (
	uLawBias = 0x84
	uLawMax  = 0x7FFF - uLawBias
)

// EncodeULaw makes a sample PCMU.
func EncodeULaw(sample int16) byte {
	magnitude, sign := int(sample), byte(0)
	if magnitude < 0 {
		magnitude, sign = -magnitude, 0x80
	}
	magnitude = min(magnitude, uLawMax) + uLawBias
	segment := bits.Len(uint(magnitude)) - 8
	return ^(sign | byte(segment)<<4 | byte(magnitude>>(segment+3))&0x0F)
}

// DecodeULaw makes PCMU a sample.
func DecodeULaw(b byte) int16 {
	b = ^b
	magnitude := (int(b&0x0F)<<3+uLawBias)<<(b>>4&7) - uLawBias
	if b&0x80 != 0 {
		return int16(-magnitude)
	}
	return int16(magnitude)
}

// aLawFlip is G.711's inversion of every other bit.
const aLawFlip = 0x55

// EncodeALaw makes a sample PCMA.
func EncodeALaw(sample int16) byte {
	magnitude, sign := int(sample), byte(0x80)
	if magnitude < 0 {
		magnitude, sign = ^magnitude, 0
	}
	segment := max(bits.Len(uint(magnitude))-8, 0)
	return (sign | byte(segment)<<4 | byte(magnitude>>(max(segment, 1)+3))&0x0F) ^ aLawFlip
}

// DecodeALaw makes PCMA a sample.
func DecodeALaw(b byte) int16 {
	b ^= aLawFlip
	segment := b >> 4 & 7
	magnitude := int(b&0x0F)<<4 + 8
	if segment > 0 {
		magnitude = (magnitude + 0x100) << (segment - 1)
	}
	if b&0x80 == 0 {
		return int16(-magnitude)
	}
	return int16(magnitude)
}
