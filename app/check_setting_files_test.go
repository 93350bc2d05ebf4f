package app

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"trunkline/internal/setting"
	"trunkline/settings"
)

// TestMissingFileIsFoundBeforeAnythingIsCreated holds that a start with a file that does not exist
// ends with setting.Problems, after which systemd does not try again, and leaves no data directory.
func TestMissingFileIsFoundBeforeAnythingIsCreated(t *testing.T) {
	for key, set := range map[string]func(*settings.Settings){
		"kafka.tls.ca_file": func(s *settings.Settings) { s.Kafka.TLS.CAFile = "/absent" },
		"sip.trunk.ca_file": func(s *settings.Settings) {
			s.SIP.Server.TLSListen = "127.0.0.1:0"
			s.SIP.Calls.Trunk.Transport = "tls"
			s.SIP.Calls.Trunk.CAFile = "/absent"
		},
		"origination.asterisk.tls.ca_file": func(s *settings.Settings) {
			s.Origination.Driver = "asterisk"
			s.Origination.Asterisk.TLS.Enabled = true
			s.Origination.Asterisk.TLS.CAFile = "/absent"
		},
	} {
		t.Run(key, func(t *testing.T) {
			s := settings.Default()
			s.DataDir, s.Listen, s.MetricsListen = filepath.Join(t.TempDir(), "data"), "127.0.0.1:0", "127.0.0.1:0"
			set(s)
			_, err := New(t.Context(), Config{Settings: s, Log: slog.New(slog.DiscardHandler), Version: "test"})
			var problems setting.Problems
			if !errors.As(err, &problems) || len(problems) != 1 || problems[0].Key != key {
				t.Errorf("the start ended with %v", err)
			}

			if _, err := os.Stat(s.DataDir); !os.IsNotExist(err) {
				t.Errorf("the data directory was created (%v)", err)
			}
		})
	}
}
