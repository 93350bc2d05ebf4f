package srtp

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"trunkline/internal/fault"
)

// Attribute is one crypto attribute of a media description (RFC 4568).
type Attribute struct {
	Tag int // by which an answer names the attribute of the offer that it takes
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

	parameters, ok := Suite(parts[1]).parameters()
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
	if err != nil || len(secret) != parameters.keyBytes+parameters.saltBytes {
		return Attribute{}, fault.Invalid("the crypto attribute's key is malformed")
	}

	return Attribute{Tag: tag, Key: Key{Suite(parts[1]), string(secret)}}, nil
}
