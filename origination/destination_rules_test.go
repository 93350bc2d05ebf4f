package origination

import (
	"testing"

	"trunkline/internal/fault"
)

func TestRules(t *testing.T) {
	rules, err := ParseRules(RuleTexts{
		Allow: []string{`^\+43`, `^\d{4}$`}, Deny: []string{`^\+43900`},
		AccountAllow: []string{"vip=^"}, AccountDeny: []string{"locked=.", "vip=^9999$"},
	})
	mustSucceed(t, err)

	for _, c := range []struct {
		account, destination string
		ok                   bool
	}{
		{"demo", "+431234", true}, {"demo", "1002", true}, {"demo", "+49123", false}, {"demo", "+43900123", false},
		{"vip", "+49123", true}, {"vip", "+43900123", true}, {"vip", "9999", false},
		{"locked", "1002", false},
	} {
		if err := rules.Check(c.account, c.destination); (err == nil) != c.ok {
			t.Errorf("%s dials %s: %v", c.account, c.destination, err)
		} else if err != nil &&
			(fault.KindOf(err) != fault.KindForbidden || fault.As(err).Fields[0].Field != "destination") {
			t.Errorf("%v", err)
		}
	}

	for _, wrong := range []RuleTexts{{Allow: []string{"("}}, {Deny: []string{"["}}, {AccountAllow: []string{"x"}},
		{AccountDeny: []string{"=x"}}, {AccountDeny: []string{"a=("}}} {
		if _, err := ParseRules(wrong); err == nil {
			t.Errorf("%+v was read", wrong)
		}
	}

	if err := (&Rules{}).Check("demo", "anything"); err != nil {
		t.Error(err)
	}
}
