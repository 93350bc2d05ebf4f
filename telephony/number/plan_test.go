package number

import "testing"

func TestCountriesThatAreNone(t *testing.T) {
	for _, country := range []string{"de", "XX", "DEU", "49", "001"} {
		if _, err := NewPlan(Settings{Country: country}); err == nil {
			t.Errorf("country %q is accepted", country)
		}
		if _, err := NewPlan(Settings{AccountCountry: []string{"demo=" + country}}); err == nil {
			t.Errorf("demo=%s is accepted", country)
		}
	}

	for _, text := range []string{"DE", "=DE", "demo=", ""} {
		if _, err := NewPlan(Settings{AccountCountry: []string{text}}); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
