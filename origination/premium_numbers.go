package origination

import (
	"fmt"
	"regexp"
	"slices"

	"trunkline/telephony/number"
)

// PremiumNumbers has the numbers that are blocked because of their price.
type PremiumNumbers struct {
	known    bool             // the numbers of number.Plan.Premium are blocked
	patterns []*regexp.Regexp // further ones
}

// Keywords that are accepted instead of a pattern.
const (
	premiumKnown = "known" // premium-rate numbers and global networks
	premiumNone  = "none"
)

// ParsePremium parses patterns: regular expressions, "known" for the premium-rate numbers that are
// known, or "none" alone.
func ParsePremium(texts []string) (*PremiumNumbers, error) {
	p := &PremiumNumbers{}
	for _, text := range texts {
		switch {
		case text == premiumKnown:
			p.known = true
		case text == premiumNone && len(texts) > 1:
			return nil, fmt.Errorf("%q stands alone", premiumNone)
		case text == premiumNone:
		default:
			compiled, err := compilePatterns([]string{text})
			if err != nil {
				return nil, err
			}
			p.patterns = append(p.patterns, compiled...)
		}
	}

	return p, nil
}

// blocks reports whether a number is blocked. Patterns are searched in the number as dialled and in
// E.164.
func (p *PremiumNumbers) blocks(numbers *number.Plan, accountID, dialled string) bool {
	if p == nil {
		return false
	}
	plain := number.Plain(dialled)
	full := numbers.E164(accountID, plain)
	return p.known && numbers.Premium(accountID, dialled) ||
		slices.ContainsFunc(p.patterns,
			func(pattern *regexp.Regexp) bool { return pattern.MatchString(plain) || pattern.MatchString(full) })
}
