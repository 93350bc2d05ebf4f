package origination

import (
	"fmt"
	"time"

	"trunkline/internal/setting"
	"trunkline/telephony/number"
)

// Settings holds the settings of origination. The drivers have their own.
type Settings struct {
	Driver        string `yaml:"driver" doc:"phone platform: sip, asterisk, freeswitch, kazoo, simulator (no phone rings), or auto (sip where the owner's phone is registered, else simulator); empty: sip where sip.listen is on"`
	RuleTexts     `yaml:",inline"`
	International string        `yaml:"international" doc:"numbers that leave the account's country (numbers.country): deny or allow; without a country, deny closes every number in international form; empty: allow where the driver is freeswitch, asterisk or kazoo, whose dialplan decides, else deny"`
	Premium       []string      `yaml:"premium" doc:"closed numbers: regular expressions over the number as dialled and in E.164; known: premium-rate numbers, satellite and global networks; the single item none: no number is closed"`
	UserPerMinute int           `yaml:"user_per_minute" doc:"calls that a user may place in a minute, by any means, then 429 or by SIP 403; 0: no limit"`
	UserCalls     int           `yaml:"user_calls" doc:"calls that a user has placed at the same time in the cluster, then 429 or by SIP 403; 0: no limit"`
	AccountCalls  int           `yaml:"account_calls" doc:"calls that an account's users have placed at the same time in the cluster, then 429 or by SIP 403; 0: no limit"`
	MaxCalls      int           `yaml:"max_calls" doc:"open calls of this node, then 503"`
	Retention     time.Duration `yaml:"retention" doc:"how long the progress of an ended call is kept"`
}

// Values of Settings.Driver. With "", DriverSIP is used where sip.listen is on.
const (
	DriverAuto       = "auto" // DriverSIP for owners with a registered phone, else DriverSimulator
	DriverSIP        = "sip"
	DriverAsterisk   = "asterisk"
	DriverFreeSWITCH = "freeswitch"
	DriverKazoo      = "kazoo"
	DriverSimulator  = "simulator"
)

// Words of the setting international.
const (
	denyInternational  = "deny"
	allowInternational = "allow"
)

// placedByPlatform reports whether the driver has another phone platform place the calls.
func (s Settings) placedByPlatform() bool {
	return s.Driver == DriverFreeSWITCH || s.Driver == DriverAsterisk || s.Driver == DriverKazoo
}

// OpenTrunk reports whether our own trunk would have neither the country of an account nor
// patterns to decide which numbers it takes.
func (s Settings) OpenTrunk(numbers number.Settings) bool {
	return s.International != allowInternational && numbers.Country == "" && len(numbers.AccountCountry) == 0 &&
		len(s.Allow) == 0 && len(s.AccountAllow) == 0
}

// Trunk is our own trunk, to which phones and the drivers sip and auto dial numbers.
type Trunk struct {
	Used          bool   // sip.trunk.address is set
	OutsidePrefix string // AdmissionConfig.OutsidePrefix
}

// Admission returns the configuration of an Admission.
func (s Settings) Admission(numbers *number.Plan, trunk Trunk) (AdmissionConfig, error) {
	rules, err := ParseRules(s.RuleTexts)
	if err != nil {
		return AdmissionConfig{}, fmt.Errorf("origination: %w", err)
	}

	premium, err := ParsePremium(s.Premium)
	if err != nil {
		return AdmissionConfig{}, fmt.Errorf("origination.premium: %w", err)
	}

	return AdmissionConfig{
		Rules: rules, Numbers: numbers, International: s.International == allowInternational, Premium: premium,
		ByPlatform: s.placedByPlatform(), PlatformDecides: s.International == "" && s.placedByPlatform(),
		Trunk: trunk.Used, OutsidePrefix: trunk.OutsidePrefix, PerMinute: s.UserPerMinute, UserCalls: s.UserCalls,
		AccountCalls: s.AccountCalls,
	}, nil
}

// RuleTexts are Rules as configured. Rules of an account have the form ACCOUNT=PATTERN and replace the
// general list of the same kind.
type RuleTexts struct {
	Allow        []string `yaml:"allow" doc:"regular expressions; a destination that matches none is refused; empty: all may be dialled"`
	Deny         []string `yaml:"deny" doc:"regular expressions; a destination that matches one is refused"`
	AccountAllow []string `yaml:"account_allow" doc:"the same for one account, in place of allow, each written ACCOUNT=EXPRESSION"`
	AccountDeny  []string `yaml:"account_deny" doc:"the same for one account, in place of deny, each written ACCOUNT=EXPRESSION"`
}

// DefaultSettings returns the settings where nothing is set.
func DefaultSettings() Settings {
	return Settings{Premium: []string{premiumKnown}, UserPerMinute: 30, UserCalls: 5, AccountCalls: 100,
		MaxCalls: 10_000, Retention: 30 * 24 * time.Hour}
}

// Validate implements setting.Group.
func (s Settings) Validate(c *setting.Check) {
	c.OneOf("driver", s.Driver, "", DriverAuto, DriverSIP, DriverAsterisk, DriverFreeSWITCH, DriverKazoo,
		DriverSimulator)
	s.RuleTexts.Validate(c)
	c.OneOf("international", s.International, "", denyInternational, allowInternational)
	_, err := ParsePremium(s.Premium)
	c.NoError(err, "premium")
	c.NotNegative("user_per_minute", s.UserPerMinute)
	c.NotNegative("user_calls", s.UserCalls)
	c.NotNegative("account_calls", s.AccountCalls)
	c.AtLeastOne("max_calls", s.MaxCalls)
	c.Must(s.Retention >= time.Minute, "retention", "must be at least 1m, is %s", s.Retention)
}

// Validate implements setting.Group.
func (r RuleTexts) Validate(c *setting.Check) {
	for _, one := range []struct {
		name  string
		texts RuleTexts
	}{
		{"allow", RuleTexts{Allow: r.Allow}}, {"deny", RuleTexts{Deny: r.Deny}},
		{"account_allow", RuleTexts{AccountAllow: r.AccountAllow}},
		{"account_deny", RuleTexts{AccountDeny: r.AccountDeny}},
	} {
		_, err := ParseRules(one.texts)
		c.NoError(err, one.name)
	}
}
