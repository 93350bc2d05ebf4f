package origination

import "testing"

func premiumPatterns(t *testing.T, texts ...string) *PremiumNumbers {
	t.Helper()
	p, err := ParsePremium(texts)
	mustSucceed(t, err)
	return p
}

func TestPremiumPatterns(t *testing.T) {
	plan := german(t)
	for _, c := range []struct {
		texts   []string
		dialled string
		want    bool
	}{
		{nil, "09001234567", false}, {[]string{"none"}, "09001234567", false},
		{[]string{"known"}, "09001234567", true}, {[]string{"known"}, "0180512345", false},
		{[]string{`^\+49180`}, "0180512345", true}, {[]string{`^\+49180`}, "09001234567", false},
		{[]string{`^118`}, "11833", true},
	} {
		if got := premiumPatterns(t, c.texts...).blocks(plan, "demo", c.dialled); got != c.want {
			t.Errorf("%q closes %s: %v", c.texts, c.dialled, got)
		}
	}

	for _, wrong := range [][]string{{"("}, {"none", "known"}} {
		if _, err := ParsePremium(wrong); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}
