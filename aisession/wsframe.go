package aisession

import (
	"encoding/binary"
	"math/rand/v2"
)

// WebSocket frames (RFC 6455, section 5.2). gorilla makes the handshake only. Outgoing frames are
// built in place, and incoming ones are parsed in the read buffer (wsread.go).
const (
	opContinuation = 0x0
	opText         = 0x1
	opBinary       = 0x2
	opClose        = 0x8
	opPing         = 0x9
	opPong         = 0xA

	finBit      = 0x80
	reservedBit = 0x70
	controlBit  = 0x08 // set in the opcodes of control frames
	maskBit     = 0x80
	maxHeader   = 14 // bytes, for the largest payload
	maskBytes   = 4
	maxControl  = 125 // bytes of a control frame
	lengthIs16  = 126
	lengthIs64  = 127
)

// headerRoom returns b with room for a header, to which the message is appended.
func headerRoom(b []byte) []byte { return append(b[:0], make([]byte, maxHeader)...) }

// seal masks the payload that follows headerRoom and writes the header in front of it. The frame
// starts at b[from].
func seal(b []byte, opcode byte) (from int) {
	payload := b[maxHeader:]
	var header [maxHeader]byte
	header[0] = finBit | opcode
	n := 2
	switch {
	case len(payload) < lengthIs16:
		header[1] = maskBit | byte(len(payload))
	case len(payload) <= 0xffff:
		header[1] = maskBit | lengthIs16
		binary.BigEndian.PutUint16(header[2:], uint16(len(payload)))
		n += 2
	default:
		header[1] = maskBit | lengthIs64
		binary.BigEndian.PutUint64(header[2:], uint64(len(payload)))
		n += 8
	}
	key := rand.Uint32() // math/rand/v2 is seeded randomly, so keys are unpredictable
	binary.LittleEndian.PutUint32(header[n:], key)
	n += maskBytes
	mask(payload, key)
	copy(b[maxHeader-n:], header[:n])
	return maxHeader - n
}

// mask applies the key, whose bytes are in little-endian order.
func mask(b []byte, key uint32) {
	wide := uint64(key)<<32 | uint64(key)
	for ; len(b) >= 8; b = b[8:] {
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)^wide)
	}
	for i := range b {
		b[i] ^= byte(key >> (8 * (i & 3)))
	}
}
