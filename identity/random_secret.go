package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
)

const secretLength = 43 // base64url characters of 256 bits

// newSecret returns a random 256-bit secret of secretLength characters.
func newSecret() string {
	var b [32]byte
	rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// hashSecret returns the hash by which a secret is stored and found. A secret has 256
// random bits, so a plain hash resists brute force, and comparing hashes reveals nothing
// about the secret.
func hashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
