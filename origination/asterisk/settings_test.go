package asterisk

import (
	"strings"
	"testing"
	"time"

	"trunkline/internal/setting"
)

func TestSettings(t *testing.T) {
	for want, change := range map[string]func(s *Settings){
		"address":          func(s *Settings) { s.Address = "pbx" },
		"username":         func(s *Settings) { s.Username = "" },
		"secret":           func(s *Settings) { s.Secret = "" },
		"one line":         func(s *Settings) { s.Secret = "a\r\nAction: Command" },
		"owner":            func(s *Settings) { s.Owner = "PJSIP/{phone}" },
		"want a channel":   func(s *Settings) { s.Owner = "{extension}" },
		"destination":      func(s *Settings) { s.Destination = "Local/{destination}@{context},30" },
		"context":          func(s *Settings) { s.Context = "a b" },
		"account_code":     func(s *Settings) { s.AccountCode = "a,b" },
		"caller_name":      func(s *Settings) { s.CallerName = "a\nb" },
		"ring_user":        func(s *Settings) { s.RingUser = 0 },
		"ring_destination": func(s *Settings) { s.RingDestination = time.Millisecond },
		"tls":              func(s *Settings) { s.TLS.CAFile = "ca.pem" },
	} {
		s := defaults().Settings
		change(&s)
		if err := setting.Validate("origination.asterisk", s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}

	if err := setting.Validate("origination.asterisk", defaults().Settings); err != nil {
		t.Error(err)
	}
}
