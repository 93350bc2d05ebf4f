package setting

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Kind is the form in which a value, or an item of a list, is written.
type Kind int

// The kinds of values.
const (
	Text     Kind = iota // string, Secret, URL, netip.Prefix
	Bool                 // bool
	Int                  // int
	Float                // float64
	Size                 // Bytes
	Duration             // time.Duration
)

// Value parses and prints one setting in place.
type Value struct {
	pointer any // *string, *Secret, *URL, *bool, *int, *float64, *Bytes, *time.Duration, *[]string or *[]netip.Prefix
}

// ValueOf returns the Value of the setting that pointer points to.
func ValueOf(pointer any) Value { return Value{pointer} }

// Kind returns the form in which the value is written.
func (v Value) Kind() Kind {
	switch v.pointer.(type) {
	case *bool:
		return Bool
	case *int:
		return Int
	case *float64:
		return Float
	case *Bytes:
		return Size
	case *time.Duration:
		return Duration
	}

	return Text
}

// IsSecret reports whether the value must not be shown, and may come from a file.
func (v Value) IsSecret() bool {
	switch v.pointer.(type) {
	case *Secret, *URL:
		return true
	}
	return false
}

// IsList reports whether the value is a list.
func (v Value) IsList() bool {
	switch v.pointer.(type) {
	case *[]string, *[]netip.Prefix:
		return true
	}
	return false
}

// SetText sets the value from one text; a list is comma-separated. After an
// error the value must not be used.
func (v Value) SetText(text string) error {
	if !v.IsList() {
		return v.Set([]string{text})
	}

	var items []string
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if item != "" {
			items = append(items, item)
		}
	}

	return v.Set(items)
}

// Set sets the value from its items: exactly one unless it is a list. After an
// error the value must not be used.
func (v Value) Set(items []string) (err error) {
	switch p := v.pointer.(type) {
	case *[]string:
		*p = items
	case *[]netip.Prefix:
		*p, err = parsePrefixes(items)
	case *string:
		*p = items[0]
	case *Secret:
		*p = Secret(items[0])
	case *URL:
		*p = URL(items[0])
	case *bool:
		*p, err = parseBool(items[0])
	case *int:
		*p, err = parse(items[0], strconv.Atoi, "want a whole number")
	case *float64:
		*p, err = parse(items[0], parseFloat, "want a number such as 0.25")
	case *Bytes:
		*p, err = parseBytes(items[0])
	case *time.Duration:
		*p, err = parse(items[0], time.ParseDuration, "want a duration such as 20s, 5m or 24h")
	default:
		err = fmt.Errorf("a setting cannot have the type %T", p)
	}

	return err
}

// Text returns the value in a form that SetText accepts, with secrets masked.
func (v Value) Text() string {
	switch p := v.pointer.(type) {
	case *string:
		return *p
	case *bool:
		return strconv.FormatBool(*p)
	case *int:
		return strconv.Itoa(*p)
	case *float64:
		return strconv.FormatFloat(*p, 'f', -1, 64)
	case *time.Duration:
		return FormatDuration(*p)
	case fmt.Stringer: // *Secret, *URL, *Bytes
		return p.String()
	}

	return strings.Join(v.Items(), ",")
}

// Items returns the items of a list.
func (v Value) Items() (items []string) {
	switch p := v.pointer.(type) {
	case *[]string:
		return *p
	case *[]netip.Prefix:
		for _, prefix := range *p {
			items = append(items, prefix.String())
		}
	}
	return items
}

// FormatDuration returns d without the zero units: 1h, not 1h0m0s.
func FormatDuration(d time.Duration) string {
	text := d.String()
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		text = short + "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		text = short + "h"
	}
	return text
}

// parse replaces the error of a parser of the standard library, which names the
// function, by a description of valid values.
func parse[T any](text string, parser func(string) (T, error), validForm string) (value T, err error) {
	value, err = parser(text)
	if err != nil {
		var none T
		return none, errors.New(validForm)
	}
	return value, nil
}

func parseFloat(text string) (float64, error) { return strconv.ParseFloat(text, 64) }

// parseBool is stricter than strconv's: a file has true and false too.
func parseBool(text string) (bool, error) {
	switch text {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errors.New("want true or false")
}

func parsePrefixes(items []string) ([]netip.Prefix, error) {
	var prefixes []netip.Prefix
	for _, item := range items {
		prefix, err := parsePrefix(item)
		if err != nil {
			return nil, errors.New("want addresses or networks such as 10.0.0.1, 10.0.0.0/8 or fd00::/8")
		}
		prefixes = append(prefixes, prefix.Masked())
	}
	return prefixes, nil
}

// parsePrefix parses a network; an address is the network of that address alone.
func parsePrefix(text string) (netip.Prefix, error) {
	address, err := netip.ParseAddr(text)
	if err == nil {
		address = address.Unmap().WithZone("")
		return netip.PrefixFrom(address, address.BitLen()), nil
	}
	return netip.ParsePrefix(text)
}
