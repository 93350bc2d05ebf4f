package encryption

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"trunkline/internal/fault"
)

// MessageUpdateFailed is the message of the error for every refused PUT. Clients compare it.
const MessageUpdateFailed = "Failed to update encryption configuration"

// Valid algorithms of a configuration.
const (
	AES256GCM = "AES-256-GCM"
	AES256CBC = "AES-256-CBC"
)

// Lengths of key and salt, in Unicode characters. docs/api.md sets only minKeyLength; maxTextLength
// lets many versions fit into the JSON of a response.
const (
	minKeyLength  = 32
	maxTextLength = 1024
)

// Change is the body of a valid PUT. A nil field is absent from the body.
type Change struct {
	Enabled   bool
	Algorithm *string
	Key       *string
	Salt      *string

	// Read-only fields: accepted if equal to the stored value.
	KeyVersion      *int64
	KeyID           *string
	HistoricalKeys  map[string]string
	HistoricalSalts map[string]string
}

// Error codes of fields.
const (
	codeRequired    = "required"
	codeWrongType   = "wrong_type"
	codeTooShort    = "too_short"
	codeTooLong     = "too_long"
	codeInsecure    = "insecure_default"
	codeUnsupported = "unsupported"
	codeReadOnly    = "read_only"
	codeUnknown     = "unknown"
)

// ParseChange parses a PUT's body, a JSON object decoded one level deep. The error is
// fault.KindInvalid and names every invalid field.
func ParseChange(body map[string]json.RawMessage) (Change, error) {
	p := parser{body: body}
	var c Change
	enabled := optional[bool](&p, "enabled", "a boolean")
	if enabled != nil {
		c.Enabled = *enabled
	} else if _, ok := body["enabled"]; !ok {
		p.fault("enabled", codeRequired, "enabled is required")
	}

	c.Algorithm = optional[string](&p, "algorithm", "a string")
	c.Salt = optional[string](&p, "salt", "a string")
	c.Key = optional[string](&p, "key", "a string")
	c.KeyVersion = p.integer("key_version")
	c.KeyID = optional[string](&p, "key_id", "a string")
	c.HistoricalKeys = p.object("historical_keys")
	c.HistoricalSalts = p.object("historical_salts")
	p.checkAlgorithm(c.Algorithm)
	p.checkSalt(c.Salt)
	p.checkKey(c.Key)
	p.refuseUnknown()

	if len(p.faults) > 0 {
		return Change{}, fault.Invalid(MessageUpdateFailed, p.faults...)
	}

	return c, nil
}

// parser reads the known fields of a body and collects the faults.
type parser struct {
	body       map[string]json.RawMessage
	readFields []string // fields that were read
	faults     []fault.Field
}

func (p *parser) fault(name, code, format string, args ...any) {
	p.faults = append(p.faults, fault.Field{Field: name, Code: code, Message: fmt.Sprintf(format, args...)})
}

// optional decodes a field. It returns nil if the field is absent, or adds a fault and
// returns nil if it has another type or is null.
func optional[T any](p *parser, name, want string) *T {
	p.readFields = append(p.readFields, name)
	raw, sent := p.body[name]
	if !sent {
		return nil
	}

	var value T
	if bytes.Equal(bytes.TrimSpace(raw), []byte("null")) || json.Unmarshal(raw, &value) != nil {
		p.fault(name, codeWrongType, "%s must be %s", name, want)
		return nil
	}

	return &value
}

// integer decodes a whole number, in any form of JSON: 2, 2.0, 2e0.
func (p *parser) integer(name string) *int64 {
	number := optional[json.Number](p, name, "an integer")
	if number == nil {
		return nil
	}

	f, err := strconv.ParseFloat(number.String(), 64)
	n := int64(f)

	// json.Number also accepts a string with a number.
	quoted := bytes.ContainsRune(p.body[name], '"')
	if quoted || err != nil || float64(n) != f || n > 1<<53 || n < -1<<53 {
		p.fault(name, codeWrongType, "%s must be an integer", name)
		return nil
	}

	return &n
}

// object decodes an object of strings, nil if it is absent or invalid.
func (p *parser) object(name string) map[string]string {
	values := optional[map[string]*string](p, name, "an object of strings")
	if values == nil {
		return nil
	}

	out := make(map[string]string, len(*values))
	for key, value := range *values {
		if value == nil {
			p.fault(name, codeWrongType, "%s must be an object of strings", name)
			return nil
		}
		out[key] = *value
	}

	return out
}

func (p *parser) checkAlgorithm(algorithm *string) {
	if algorithm != nil && *algorithm != AES256GCM && *algorithm != AES256CBC {
		p.fault("algorithm", codeUnsupported, "algorithm must be %s or %s", AES256GCM, AES256CBC)
	}
}

func (p *parser) checkKey(key *string) {
	if key == nil {
		return
	}

	n := utf8.RuneCountInString(*key)
	if n < minKeyLength {
		p.fault("key", codeTooShort, "key must have at least %d characters", minKeyLength)
	} else if n > maxTextLength {
		p.fault("key", codeTooLong, "key must have at most %d characters", maxTextLength)
		return
	}

	if isInsecureKey(*key) {
		p.fault("key", codeInsecure, "key must not be a default, one repeated character or a plain run")
	}
}

func (p *parser) checkSalt(salt *string) {
	if salt == nil {
		return
	}
	if *salt == "" {
		p.fault("salt", codeTooShort, "salt must not be empty")
	}
	if utf8.RuneCountInString(*salt) > maxTextLength {
		p.fault("salt", codeTooLong, "salt must have at most %d characters", maxTextLength)
	}
	if normalize(*salt) == defaultSalt {
		p.fault("salt", codeInsecure, "salt must not be %s", defaultSalt)
	}
}

// Bounds of the unknown fields in a response: their number, and the characters of a name.
const (
	maxShownNames     = 16
	maxShownNameBytes = 64
)

func (p *parser) refuseUnknown() {
	unknown := slices.DeleteFunc(slices.Sorted(maps.Keys(p.body)), func(name string) bool {
		return slices.Contains(p.readFields, name)
	})
	for _, name := range unknown[:min(len(unknown), maxShownNames)] {
		chars := []rune(name)
		if len(chars) > maxShownNameBytes {
			name = string(chars[:maxShownNameBytes]) + "…"
		}
		p.fault(name, codeUnknown, "there is no such field")
	}
}
