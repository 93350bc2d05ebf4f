package number

import (
	"fmt"
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// Plan has the country of each account.
type Plan struct {
	country  string            // ISO 3166-1 alpha-2; "" if none
	accounts map[string]string // countries by account id; they override country
}

// NewPlan returns the plan of the settings.
func NewPlan(s Settings) (*Plan, error) {
	if s.Country != "" && !isCountryCode(s.Country) {
		return nil, countryError(s.Country)
	}

	p := &Plan{country: s.Country, accounts: make(map[string]string, len(s.AccountCountry))}
	for _, text := range s.AccountCountry {
		account, country, ok := strings.Cut(text, "=")
		if !ok || account == "" {
			return nil, fmt.Errorf("%q is not written ACCOUNT=COUNTRY", text)
		}
		if !isCountryCode(country) {
			return nil, countryError(country)
		}

		p.accounts[account] = country
	}

	return p, nil
}

func isCountryCode(country string) bool { return phonenumbers.GetSupportedRegions()[country] }

func countryError(country string) error {
	return fmt.Errorf("%q is no country code of two capital letters (ISO 3166), as DE", country)
}

// HasCountry reports whether the country in which an account dials is known.
func (p *Plan) HasCountry(accountID string) bool {
	country := p.country
	if own, ok := p.accounts[accountID]; ok {
		country = own
	}
	return country != ""
}
