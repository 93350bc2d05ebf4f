package srtp

import (
	"crypto/rand"

	pion "github.com/pion/srtp/v3"
)

// Suite is a crypto suite by its name in SDP.
type Suite string

// The supported suites (RFC 4568, section 6.2, and RFC 7714, section 14.2).
const (
	AES128CM  Suite = "AES_CM_128_HMAC_SHA1_80"
	AES128GCM Suite = "AEAD_AES_128_GCM"
	AES256GCM Suite = "AEAD_AES_256_GCM"
)

// Suites returns the supported suites in the order in which they are offered. The one that all peers
// support is first, because some read the first line only.
func Suites() []Suite { return []Suite{AES128CM, AES256GCM, AES128GCM} }

// suiteParameters has the profile of a suite, and the lengths of its master key and salt in bytes.
type suiteParameters struct {
	profile             pion.ProtectionProfile
	keyBytes, saltBytes int
}

func (s Suite) parameters() (suiteParameters, bool) {
	switch s {
	case AES128CM:
		return suiteParameters{profile: pion.ProtectionProfileAes128CmHmacSha1_80, keyBytes: 16, saltBytes: 14}, true
	case AES128GCM:
		return suiteParameters{profile: pion.ProtectionProfileAeadAes128Gcm, keyBytes: 16, saltBytes: 12}, true
	case AES256GCM:
		return suiteParameters{profile: pion.ProtectionProfileAeadAes256Gcm, keyBytes: 32, saltBytes: 12}, true
	}
	return suiteParameters{}, false
}

// Key is the master key and salt of one direction. It is comparable; the zero value is no key.
type Key struct {
	cipher Suite
	secret string // the bytes of the master key, and of the salt after it
}

// NewKey returns a new random key. It is the zero value if the suite is not supported.
func NewKey(suite Suite) Key {
	parameters, ok := suite.parameters()
	if !ok {
		return Key{}
	}
	secret := make([]byte, parameters.keyBytes+parameters.saltBytes)
	rand.Read(secret) // never fails
	return Key{suite, string(secret)}
}

// Suite returns the key's suite.
func (k Key) Suite() Suite { return k.cipher }

// String returns the suite, without the secret, so that a printed Key does not tell it.
func (k Key) String() string { return "media key (" + string(k.cipher) + ")" }

// GoString is String.
func (k Key) GoString() string { return k.String() }

// Keys has the keys of both directions of a leg. The zero value is plain RTP.
type Keys struct{ Send, Receive Key }
