package cli_test

import (
	"strings"
	"testing"

	"trunkline/cmd/internal/cli"
	"trunkline/settings"
)

func TestServerURL(t *testing.T) {
	for listen, want := range map[string]string{
		":9443": "https://127.0.0.1:9443", "0.0.0.0:1": "https://127.0.0.1:1", "[::]:1": "https://127.0.0.1:1",
		"[::1]:2": "https://[::1]:2", "example.com:3": "https://example.com:3",
	} {
		s := settings.Default()
		s.Listen = listen
		if got := cli.ServerURL(s); got != want {
			t.Errorf("%s is reached at %s, want %s", listen, got, want)
		}

		s.TLS.Mode = "off"
		if got := cli.ServerURL(s); !strings.HasPrefix(got, "http://") {
			t.Errorf("without TLS %s is reached at %s", listen, got)
		}
	}
}
