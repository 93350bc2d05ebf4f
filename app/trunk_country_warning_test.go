package app

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/settings"
	"trunkline/telephony/number"
)

// A start whose trunk cannot tell which numbers leave the country says so, and names the settings.
func TestATrunkWithoutACountryWarns(t *testing.T) {
	for name, c := range map[string]struct {
		trunk   string
		numbers number.Settings
		allow   []string
		warns   bool
	}{
		"without a country":      {"sip.carrier.example", number.Settings{}, nil, true},
		"with a country":         {"sip.carrier.example", number.Settings{Country: "DE"}, nil, false},
		"with what is allowed":   {"sip.carrier.example", number.Settings{}, []string{`\+49.*`}, false},
		"without a trunk at all": {"", number.Settings{}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			var text bytes.Buffer
			log := slog.New(slog.NewTextHandler(&text, nil))
			a := &base{process: &process{settings: settings.Default(), log: log, registry: prometheus.NewRegistry(),
				lifecycle: newLifecycle(log)}}
			a.settings.SIP.Calls.Trunk.Address = c.trunk
			a.settings.Numbers = c.numbers
			a.settings.Origination.Allow = c.allow

			if _, err := buildAdmission(a); err != nil {
				t.Fatal(err)
			}

			got := text.String()
			if strings.Contains(got, "numbers.country") != c.warns ||
				strings.Contains(got, "origination.allow") != c.warns {
				t.Errorf("logs %q", got)
			}
		})
	}
}
