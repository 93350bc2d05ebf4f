package sip

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
)

// branchSigner generates the Via branches of our requests and recognises them in responses, so that a
// response from a sender that has not received one of our requests is dropped before it is parsed.
type branchSigner struct{ key [32]byte }

const (
	magicCookie      = "z9hG4bK" // RFC 3261, section 8.1.1.7
	branchRandomSize = 9
	branchMACSize    = 9
)

// newBranch returns a new branch: random bytes and a MAC over them.
func (b *branchSigner) newBranch() string {
	var raw [branchRandomSize + branchMACSize]byte
	rand.Read(raw[:branchRandomSize]) // never fails
	copy(raw[branchRandomSize:], b.mac(raw[:branchRandomSize]))
	return magicCookie + base64.RawURLEncoding.EncodeToString(raw[:])
}

func (b *branchSigner) mac(over []byte) []byte {
	mac := hmac.New(sha256.New, b.key[:])
	mac.Write(over)
	return mac.Sum(nil)[:branchMACSize]
}

// isOurs reports whether the first branch of a message is one of ours.
func (b *branchSigner) isOurs(message []byte) bool {
	_, rest, found := bytes.Cut(message, []byte(magicCookie))
	var raw [branchRandomSize + branchMACSize]byte
	size := base64.RawURLEncoding.EncodedLen(len(raw))
	if !found || len(rest) < size {
		return false
	}

	_, err := base64.RawURLEncoding.Decode(raw[:], rest[:size])
	if err != nil {
		return false
	}

	return hmac.Equal(raw[branchRandomSize:], b.mac(raw[:branchRandomSize]))
}
