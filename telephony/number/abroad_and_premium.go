package number

import (
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// Abroad reports whether a number, as the account dials it, may be outside the account's country.
// Extensions, short codes and names are not. An unrecognised number counts as outside: an invalid
// number with an international prefix, a number with a code such as *31# before it, and, if the account
// has no country, every number that is or could be an international one.
//
// A number is also checked without a code before it, because a trunk may remove the code.
func (p *Plan) Abroad(accountID, number string) bool {
	return p.mayBeAbroad(accountID, parseDialled(number)) || p.mayBeAbroad(accountID, parseDialled(Plain(number)))
}

// mayBeAbroad is Abroad for one reading of a number.
func (p *Plan) mayBeAbroad(accountID string, d dialled) bool {
	country := p.country
	if own, ok := p.accounts[accountID]; ok {
		country = own
	}

	switch {
	case d.hasPlus:
		return !digitsInCountry(country, d.digits)
	case len(d.digits) <= maxExtensionDigits:
		return false
	case d.hasCode:
		return true
	case country == "":
		return strings.HasPrefix(d.digits, "00") || strings.HasPrefix(d.digits, "011") ||
			hasInternationalEnd("", d.digits) ||
			len(d.digits) > maxNationalDigits && isInternational(d.digits)
	}

	parsed, err := phonenumbers.ParseAndKeepRawInput(d.digits, country)
	if err != nil {
		return true // an international prefix without a country code, or too long
	}

	if parsed.GetCountryCodeSource() == phonenumbers.PhoneNumber_FROM_NUMBER_WITH_IDD {
		return !numberInCountry(country, parsed)
	}
	if phonenumbers.IsPossibleNumberWithReason(parsed) == phonenumbers.IS_POSSIBLE &&
		dialledInFull(d.digits, country, parsed) {
		return !numberInCountry(country, parsed)
	}

	// A trunk may interpret it as an international number without its prefix, or its first digits as
	// the code of a carrier.
	return isInternational(d.digits) && !digitsInCountry(country, d.digits) ||
		!phonenumbers.IsValidNumber(parsed) && hasInternationalEnd(country, d.digits)
}

// hasInternationalEnd reports whether digits end in "00" and a number of another country.
func hasInternationalEnd(country, digits string) bool {
	for i := range digits {
		if end, ok := strings.CutPrefix(digits[i:], "00"); ok && isInternational(end) &&
			!digitsInCountry(country, end) {
			return true
		}
	}
	return false
}

// maxNationalDigits is the largest number of digits of a national number if the country is unknown.
const maxNationalDigits = 10

// digitsInCountry reports whether the digits of a number in E.164 belong to a country.
func digitsInCountry(country, digits string) bool {
	parsed, err := phonenumbers.Parse("+"+digits, "")
	return err == nil && numberInCountry(country, parsed)
}

// isInternational reports whether digits can be a number with its country code.
func isInternational(digits string) bool {
	parsed, err := phonenumbers.Parse("+"+digits, "")
	return err == nil && phonenumbers.IsPossibleNumberWithReason(parsed) == phonenumbers.IS_POSSIBLE
}

// numberInCountry reports whether a number belongs to a country. Countries can share a country code, such as
// those of the NANP; a number that cannot be assigned to one of them belongs to each.
func numberInCountry(country string, parsed *phonenumbers.PhoneNumber) bool {
	if country == "" || int(parsed.GetCountryCode()) != phonenumbers.GetCountryCodeForRegion(country) {
		return false
	}
	region := phonenumbers.GetRegionCodeForNumber(parsed)
	return region == "" || region == country || phonenumbers.IsValidNumberForRegion(parsed, country)
}

// Premium reports whether a number, as the account dials it, is a premium-rate number of any country,
// or in a satellite or global network (country codes 870, 881, 882, 883, 979; ITU-T E.164). Exchanges
// ignore digits after a complete number, so the type of a number of unknown type is that of its longest
// prefix with a known type.
func (p *Plan) Premium(accountID, number string) bool {
	plain := Plain(number)
	for ; len(plain) > maxExtensionDigits; plain = plain[:len(plain)-1] {
		full := p.E164(accountID, plain)
		if !strings.HasPrefix(full, "+") {
			continue
		}

		for _, network := range []string{"+870", "+881", "+882", "+883", "+979"} {
			if strings.HasPrefix(full, network) {
				return true
			}
		}

		kind := numberType(full)
		if kind != phonenumbers.UNKNOWN {
			return kind == phonenumbers.PREMIUM_RATE
		}
	}

	return false
}

// numberType returns the type of a number in E.164.
func numberType(full string) phonenumbers.PhoneNumberType {
	parsed, err := phonenumbers.Parse(full, "")
	if err != nil {
		return phonenumbers.UNKNOWN
	}
	return phonenumbers.GetNumberType(parsed)
}
