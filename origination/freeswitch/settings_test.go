package freeswitch

import (
	"testing"

	"trunkline/internal/setting"
)

func TestSettingsValidate(t *testing.T) {
	if err := setting.Validate("x", defaults().Settings); err != nil {
		t.Fatal(err)
	}

	for name, spoil := range map[string]func(*Settings){
		"owner with a blank":        func(s *Settings) { s.Owner = "user/{extension} &park" },
		"owner with an unknown":     func(s *Settings) { s.Owner = "user/{user}" },
		"owner that does not close": func(s *Settings) { s.Owner = "user/{extension" },
		"destination with a paren":  func(s *Settings) { s.Destination = "loopback/{destination})" },
		"destination with a line":   func(s *Settings) { s.Destination = "loopback/{destination}\n\nexit" },
		"context with a slash":      func(s *Settings) { s.Context = "a/b" },
		"name with a quote":         func(s *Settings) { s.CallerName = "O'Neil" },
		"ringback with a semicolon": func(s *Settings) { s.Ringback = "x;y=z" },
		"no time to ring":           func(s *Settings) { s.RingUser = 1 },
	} {
		s := defaults().Settings
		spoil(&s)
		if setting.Validate("x", s) == nil {
			t.Errorf("%s was accepted", name)
		}
	}

	other := defaults()
	other.Owner = "sofia/internal/{extension}@{domain}"
	other.Destination = "sofia/gateway/carrier/{destination}"
	other.CallerName = "Zoë Ünal {extension}"
	other.Ringback = "-"
	other.Domain = "10.0.0.1:5060"

	if err := setting.Validate("x", other.Settings); err != nil {
		t.Error(err)
	}
}
