package envelope

import (
	"crypto/aes"
	"crypto/cipher"
	"fmt"
)

// gcmChunks is suite AES256GCM: nonce (12) ‖ ciphertext ‖ tag (16).
//
// The nonce is random and made inside the standard library: Go refuses nonces
// chosen by the caller in FIPS 140-only mode, and with a fresh key for each
// recording a counter would gain nothing. Order is bound by the place.
type gcmChunks struct{ aead cipher.AEAD }

const gcmOverhead = 12 + 16

func newGCM(dek *[keySize]byte) (chunkCipher, error) {
	key, err := subkey(dek, labelGCM)
	if err != nil {
		return nil, err
	}
	defer clear(key[:])
	aead, err := randomNonceGCM(key[:])
	return gcmChunks{aead}, err
}

func randomNonceGCM(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("AES: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("AES-GCM: %w", err)
	}
	return aead, nil
}

func (c gcmChunks) seal(dst, plain []byte, at *place) ([]byte, error) {
	return c.aead.Seal(dst, nil, plain, at[:]), nil
}

func (c gcmChunks) open(dst, sealed []byte, at *place) ([]byte, bool) {
	plain, err := c.aead.Open(dst, nil, sealed, at[:])
	return plain, err == nil
}

func (c gcmChunks) overhead() int { return gcmOverhead }
func (c gcmChunks) minimum() int  { return gcmOverhead }
