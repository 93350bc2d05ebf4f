package sqldb

import (
	"crypto/rand"
	"encoding/hex"
)

// NewID returns a random id of a row, 128 bits in hexadecimal: safe in a path and in a
// SIP address.
func NewID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
