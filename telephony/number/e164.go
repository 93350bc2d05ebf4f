package number

import (
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// E164 converts a number, as the account dials it, to E.164. It returns the number unchanged if it is
// not a possible number of the country, or if the account has no country and the number no "+".
func (p *Plan) E164(accountID, number string) string {
	digits := strings.NewReplacer(" ", "", "-", "", ".", "", "/", "", "(", "", ")", "").Replace(number)
	international := strings.HasPrefix(digits, "+")
	if strings.Trim(strings.TrimPrefix(digits, "+"), "0123456789") != "" ||
		!international && len(digits) <= maxExtensionDigits {
		return number
	}

	country, own := p.accounts[accountID]
	if !own {
		country = p.country
	}
	if country == "" && !international {
		return number
	}

	parsed, err := phonenumbers.Parse(digits, country)
	if err != nil || phonenumbers.IsPossibleNumberWithReason(parsed) != phonenumbers.IS_POSSIBLE {
		return number
	}

	if parsed.GetItalianLeadingZero() && !phonenumbers.IsValidNumber(parsed) {
		return number // few countries have numbers that begin with 0
	}
	if !international && !dialledInFull(digits, country, parsed) {
		return number
	}

	return phonenumbers.Format(parsed, phonenumbers.E164)
}

// dialledInFull reports whether the digits are more than a subscriber number within an area: they begin
// with the country's national prefix or an international prefix, or the country has no area codes.
func dialledInFull(digits, country string, parsed *phonenumbers.PhoneNumber) bool {
	if phonenumbers.GetRegionCodeForNumber(parsed) != country &&
		parsed.GetCountryCode() != int32(phonenumbers.GetCountryCodeForRegion(country)) {
		return true // an international prefix was removed
	}

	switch prefix := phonenumbers.GetNddPrefixForRegion(country, true); prefix {
	case "": // numbers have no area code
		return phonenumbers.IsValidNumber(parsed)
	case "1": // NANP: ten digits, with or without the 1
		return true
	default:
		return strings.HasPrefix(digits, prefix) || strings.HasPrefix(digits, "00")
	}
}
