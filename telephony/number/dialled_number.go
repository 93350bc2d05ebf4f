package number

import (
	"strings"
	"unicode"
)

// maxExtensionDigits is a number of digits. A number without a "+" and with at most that many is an
// extension or a short code.
const maxExtensionDigits = 6

// Plain returns a number in ASCII digits, with its "+", but without a code before it and without other
// characters. It returns names unchanged.
func Plain(number string) string {
	d := parseDialled(number[strings.LastIndexAny(number, "*#")+1:])
	switch {
	case d.digits == "":
		return number
	case d.hasPlus:
		return "+" + d.digits
	}
	return d.digits
}

// dialled is a number without its separators.
type dialled struct {
	hasPlus bool   // begins with "+"
	hasCode bool   // has characters with an effect that depends on the exchange, such as * and #
	digits  string // ASCII; "" for a name
}

// parseDialled accepts the digits of any script, because a trunk may. A text that begins with a letter
// is a name, unless it is letters and then a number, such as w0088216123456 or tel:+88216123456, of
// which a trunk may drop the letters.
func parseDialled(number string) (d dialled) {
	var digits []byte
	var letters bool // before the first digit
	for _, r := range number {
		if n, ok := digitValue(r); ok {
			digits = append(digits, '0'+n)
			continue
		}

		switch {
		case r == '+' || r == '＋' || r == '﹢':
			d.hasPlus = d.hasPlus || len(digits) == 0
		case isSeparator(r):
		case letters && len(digits) > 0 && strings.ContainsRune("@;", r):
			return numberAfterLetters(d, digits)
		case letters && len(digits) > 0 && !d.hasPlus && !d.hasCode && unicode.IsLetter(r):
			return dialled{}
		case len(digits) == 0 && !d.hasPlus && !d.hasCode && unicode.IsLetter(r):
			letters = true
		default:
			d.hasCode = true
		}
	}

	if letters {
		return numberAfterLetters(d, digits)
	}

	d.digits = string(digits)
	return d
}

// numberAfterLetters returns the number after letters, or a name if the number is short.
func numberAfterLetters(d dialled, digits []byte) dialled {
	if len(digits) <= maxExtensionDigits {
		return dialled{}
	}
	d.hasCode, d.digits = true, string(digits)
	return d
}

func isSeparator(r rune) bool {
	return strings.ContainsRune("./()", r) || unicode.IsSpace(r) || unicode.In(r, unicode.Pd, unicode.Cf, unicode.Mn)
}

// digitValue returns the value of a decimal digit of any script. A Unicode block of decimal digits has ten
// of them in ascending order.
func digitValue(r rune) (value byte, ok bool) {
	for _, block := range unicode.Nd.R16 {
		if rune(block.Lo) <= r && r <= rune(block.Hi) {
			return byte((r - rune(block.Lo)) % 10), true
		}
	}

	for _, block := range unicode.Nd.R32 {
		if rune(block.Lo) <= r && r <= rune(block.Hi) {
			return byte((r - rune(block.Lo)) % 10), true
		}
	}

	return 0, false
}
