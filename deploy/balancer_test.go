package deploy_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
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

// TestANodeEndsBehindTheBalancer: with compose's HAProxy configuration, but for
// addresses and TLS, a fanout node is told to end, drains and goes. Nobody who
// asks meanwhile is refused.
func TestANodeEndsBehindTheBalancer(t *testing.T) {
	haproxy := tool(t, "haproxy")
	first, second := serve(t, "TRUNKLINE_TLS_MODE=off"), serve(t, "TRUNKLINE_TLS_MODE=off")
	balancer := freeAddress(t)
	text, err := os.ReadFile("compose/haproxy.cfg")
	if err != nil {
		t.Fatal(err)
	}
	config := string(text)
	for from, to := range map[string]string{
		`bind :9443 ssl crt /run/secrets/tls.*`: "bind " + balancer,
		` resolvers docker init-addr.*`:         "",
		`fanout-1:9443`:                         first.public + " port " + portOf(first.metrics),
		`fanout-2:9443`:                         second.public + " port " + portOf(second.metrics),
		`core:9443`:                             second.public + " port " + portOf(second.metrics),
	} {
		pattern := regexp.MustCompile(from)
		if !pattern.MatchString(config) {
			t.Fatalf("haproxy.cfg has no %s", from)
		}
		config = pattern.ReplaceAllString(config, to)
	}
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	beside(t, os.Environ(), haproxy, "-f", file)

	// A connection for each request, so that the balancer decides each time.
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	ask := func() error {
		_, err := get(client, "http://"+balancer+"/ws/v1/cc_events/health")
		return err
	}
	eventually(t, "the balancer", ask)
	asked := 0
	still := func(what string) {
		t.Helper()
		if err := ask(); err != nil {
			t.Fatalf("request %d, %s: %v", asked, what, err)
		}
		asked++
	}
	for range 20 {
		still("both there")
	}
	if err := first.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for running := true; running; {
		still("one draining")
		select {
		case <-first.ended:
			running = false
		default:
		}
	}
	for range 100 {
		still("one gone")
	}
	t.Logf("%d requests, none refused", asked)
}

func portOf(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }
