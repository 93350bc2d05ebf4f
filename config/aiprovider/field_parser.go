package aiprovider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"trunkline/internal/fault"
)

// Error codes of fields.
const (
	codeRequired    = "required"
	codeWrongType   = "wrong_type"
	codeTooLong     = "too_long"
	codeTooMany     = "too_many"
	codeInvalid     = "invalid"
	codeMismatch    = "mismatch"
	codeUnsupported = "unsupported"
	codeReserved    = "reserved"
	codeRepeated    = "repeated"
	codeMasked      = "masked"
	codeReadOnly    = "read_only"
	codeUnknown     = "unknown"
)

// parser removes the members that it reads from an object and collects the faults. The
// members that remain are unknown.
type parser struct {
	members map[string]json.RawMessage // not read yet
	path    string                     // of the object in the body, "" or ending in "."
	faults  *[]fault.Field
}

func newParser(body map[string]json.RawMessage) *parser {
	return &parser{members: maps.Clone(body), faults: new([]fault.Field)}
}

func (p *parser) fault(name, code, format string, args ...any) {
	*p.faults = append(*p.faults, fault.Field{Field: p.path + name, Code: code, Message: fmt.Sprintf(format, args...)})
}

// objectFault adds a fault of the object itself.
func (p *parser) objectFault(code, format string, args ...any) {
	*p.faults = append(*p.faults,
		fault.Field{Field: strings.TrimSuffix(p.path, "."), Code: code, Message: fmt.Sprintf(format, args...)})
}

// optional decodes a member. It returns nil if the member is absent, or adds a fault and
// returns nil if it has another type or is null.
func optional[T any](p *parser, name, want string) *T {
	raw, sent := p.members[name]
	delete(p.members, name)
	if !sent {
		return nil
	}

	var value T
	if bytes.Equal(bytes.TrimSpace(raw), []byte("null")) || json.Unmarshal(raw, &value) != nil {
		p.fault(name, codeWrongType, "must be %s", want)
		return nil
	}

	return &value
}

// required is optional for a required member.
func required[T any](p *parser, name, want string) *T {
	_, sent := p.members[name]
	if !sent {
		p.fault(name, codeRequired, "is required")
	}
	return optional[T](p, name, want)
}

// object returns a parser of a member that is an object. It is never nil; that of an
// absent or invalid member has no members.
func (p *parser) object(name string) (inner *parser, sent bool) {
	members := optional[map[string]json.RawMessage](p, name, "an object")
	inner = &parser{path: p.path + name + ".", faults: p.faults}
	if members != nil {
		inner.members = *members
	}
	return inner, members != nil
}

// requiredObject calls read with the parser of a required object, unless the member is
// absent or invalid.
func (p *parser) requiredObject(name string, read func(inner *parser)) {
	_, sent := p.members[name]
	if !sent {
		p.fault(name, codeRequired, "is required")
	}
	if inner, ok := p.object(name); ok {
		read(inner)
		inner.refuseUnknown()
	}
}

// Bounds of the unknown members in a response: their number, and the characters of a name.
const (
	maxShownNames     = 16
	maxShownNameBytes = 64
)

func (p *parser) refuseUnknown() {
	unknown := slices.Sorted(maps.Keys(p.members))
	for _, name := range unknown[:min(len(unknown), maxShownNames)] {
		p.fault(shorten(name), codeUnknown, "is not a field of this request")
	}
}

func shorten(name string) string {
	chars := []rune(name)
	if len(chars) > maxShownNameBytes {
		return string(chars[:maxShownNameBytes]) + "…"
	}
	return name
}
