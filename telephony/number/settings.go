package number

import "trunkline/internal/setting"

// Settings holds the settings for the interpretation of numbers.
type Settings struct {
	Country        string   `yaml:"country" doc:"country in which accounts dial, ISO 3166 code of two letters, as DE: AI providers get its numbers in E.164; empty: only numbers that begin with +"`
	AccountCountry []string `yaml:"account_country" doc:"the same for one account, in place of country, each written ACCOUNT=COUNTRY"`
}

// Validate implements setting.Group.
func (s Settings) Validate(c *setting.Check) {
	_, err := NewPlan(Settings{Country: s.Country})
	c.NoError(err, "country")
	_, err = NewPlan(Settings{AccountCountry: s.AccountCountry})
	c.NoError(err, "account_country")
}
