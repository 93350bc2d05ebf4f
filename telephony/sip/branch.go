package sip

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
)

// branches generates the Via branches of our requests and recognises them in responses, so that a
// response from a sender that has not received one of our requests is dropped before it is parsed.
type branches struct{ key [32]byte }

const (
	magicCookie  = "z9hG4bK" // RFC 3261, section 8.1.1.7
	branchRandom = 9
	branchCode   = 9
)

// make returns a new branch: random bytes and a MAC over them.
func (b *branches) make() string {
	var raw [branchRandom + branchCode]byte
	rand.Read(raw[:branchRandom]) // never fails
	copy(raw[branchRandom:], b.code(raw[:branchRandom]))
	return magicCookie + base64.RawURLEncoding.EncodeToString(raw[:])
}

func (b *branches) code(over []byte) []byte {
	mac := hmac.New(sha256.New, b.key[:])
	mac.Write(over)
	return mac.Sum(nil)[:branchCode]
}

// in reports whether the first branch of a message is one of ours.
func (b *branches) in(message []byte) bool {
	_, rest, found := bytes.Cut(message, []byte(magicCookie))
	var raw [branchRandom + branchCode]byte
	size := base64.RawURLEncoding.EncodedLen(len(raw))
	if !found || len(rest) < size {
		return false
	}
	if _, err := base64.RawURLEncoding.Decode(raw[:], rest[:size]); err != nil {
		return false
	}
	return hmac.Equal(raw[branchRandom:], b.code(raw[:branchRandom]))
}
