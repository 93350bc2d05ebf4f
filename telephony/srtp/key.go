package srtp

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	pion "github.com/pion/srtp/v3"

	"trunkline/internal/fault"
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
	profile   pion.ProtectionProfile
	key, salt int
}

func (s Suite) parameters() (suiteParameters, bool) {
	switch s {
	case AES128CM:
		return suiteParameters{pion.ProtectionProfileAes128CmHmacSha1_80, 16, 14}, true
	case AES128GCM:
		return suiteParameters{pion.ProtectionProfileAeadAes128Gcm, 16, 12}, true
	case AES256GCM:
		return suiteParameters{pion.ProtectionProfileAeadAes256Gcm, 32, 12}, true
	}
	return suiteParameters{}, false
}

// Key is the master key and salt of one direction. It is comparable; the zero value is no key.
type Key struct {
	cipher Suite
	secret string
}

// NewKey returns a new random key. It is the zero value if the suite is not supported.
func NewKey(suite Suite) Key {
	size, ok := suite.parameters()
	if !ok {
		return Key{}
	}
	secret := make([]byte, size.key+size.salt)
	rand.Read(secret) // never fails
	return Key{suite, string(secret)}
}

// Suite returns the key's suite.
func (k Key) Suite() Suite { return k.cipher }

// String returns the suite, without the key.
func (k Key) String() string { return "media key (" + string(k.cipher) + ")" }

// GoString is String.
func (k Key) GoString() string { return k.String() }

// Keys has the keys of both directions of a leg. The zero value is plain RTP.
type Keys struct{ Send, Receive Key }

// Attribute is one crypto attribute of a media description.
type Attribute struct {
	Tag int
	Key Key
}

// String returns the value of the SDP attribute, with the key.
func (a Attribute) String() string {
	return fmt.Sprintf("%d %s inline:%s", a.Tag, a.Key.cipher, base64.StdEncoding.EncodeToString([]byte(a.Key.secret)))
}

// maxTag is the largest tag (RFC 4568, section 9.1: nine digits).
const maxTag = 999_999_999

// ParseAttribute parses the value of a crypto attribute. The error is fault.KindUnsupported for a suite
// or parameter that is not supported, and fault.KindInvalid for a malformed value.
func ParseAttribute(value string) (Attribute, error) {
	parts := strings.Fields(value)
	if len(parts) < 3 {
		return Attribute{}, fault.Invalid("the crypto attribute is malformed")
	}

	tag, err := strconv.Atoi(parts[0])
	if err != nil || tag < 0 || tag > maxTag {
		return Attribute{}, fault.Invalid("the crypto attribute's tag is malformed")
	}

	size, ok := Suite(parts[1]).parameters()
	if !ok {
		return Attribute{}, fault.New(fault.KindUnsupported, "the crypto suite is not supported")
	}

	for _, parameter := range parts[3:] {
		// RFC 4568, section 6.3: a window size is a hint, and "-" marks parameters that may be ignored.
		if !strings.HasPrefix(parameter, "WSH=") && !strings.HasPrefix(parameter, "-") {
			return Attribute{},
				fault.New(fault.KindUnsupported, "the crypto attribute's session parameter is not supported")
		}
	}

	inline, ok := strings.CutPrefix(parts[2], "inline:")
	if !ok {
		return Attribute{}, fault.New(fault.KindUnsupported, "the crypto attribute's key method is not supported")
	}

	encoded, more, _ := strings.Cut(inline, "|") // then a lifetime, which is longer than any call, and an MKI
	if strings.ContainsAny(more, ":;") || strings.Contains(encoded, ";") {
		return Attribute{}, fault.New(fault.KindUnsupported, "several keys with identifiers are not supported")
	}

	secret, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(encoded, "="))
	if err != nil || len(secret) != size.key+size.salt {
		return Attribute{}, fault.Invalid("the crypto attribute's key is malformed")
	}

	return Attribute{Tag: tag, Key: Key{Suite(parts[1]), string(secret)}}, nil
}
