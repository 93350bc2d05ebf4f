package deploy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestToolsTakeTheirFiles: what compose gives to HAProxy and Prometheus is
// valid, but for names and files that only its containers have.
func TestToolsTakeTheirFiles(t *testing.T) {
	t.Run("haproxy", func(t *testing.T) {
		haproxy := tool(t, "haproxy")
		config := filepath.Join(t.TempDir(), "haproxy.cfg")
		text, err := os.ReadFile("compose/haproxy.cfg")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(config, []byte(strings.Replace(string(text), " ssl crt /run/secrets/tls", "", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		must(t, haproxy, "-c", "-f", config)
	})
	t.Run("prometheus", func(t *testing.T) {
		must(t, tool(t, "promtool"), "check", "config", "--syntax-only", "compose/prometheus.yaml")
	})
}
