package identity

import (
	"testing"
	"time"

	"trunkline/internal/setting"
)

func TestSettingsRefuse(t *testing.T) {
	const day = 24 * time.Hour
	for name, change := range map[string]func(*Settings){
		"a short access token":    func(s *Settings) { s.AccessTTL = 1 },
		"a long access token":     func(s *Settings) { s.AccessTTL = maxTokenTTL + 1 },
		"a negative events token": func(s *Settings) { s.EventsTTL = -day },
		"a short refresh token":   func(s *Settings) { s.RefreshTTL = 1 },
	} {
		s := DefaultSettings()
		change(&s)
		if setting.Validate("auth", s) == nil {
			t.Errorf("%s was accepted", name)
		}
	}

	if err := setting.Validate("auth", DefaultSettings()); err != nil {
		t.Errorf("the defaults: %v", err)
	}

	for _, cost := range []Argon2{{MemoryKiB: 1 << 30, Passes: 1, Lanes: 1}, {MemoryKiB: 7, Passes: 1, Lanes: 1}} {
		if cost.check() == nil {
			t.Errorf("%+v was accepted", cost)
		}
	}
}
