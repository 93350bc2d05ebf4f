package deploy_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"trunkline/deploy/balancer"
	"trunkline/internal/freeport"
)

// TestToolsTakeTheirFiles checks that the configurations of HAProxy and Prometheus in compose are
// valid, except for names and files that exist only in the containers.
func TestToolsTakeTheirFiles(t *testing.T) {
	t.Run("haproxy", func(t *testing.T) {
		haproxy := lookTool(t, "haproxy")
		config := filepath.Join(t.TempDir(), "haproxy.cfg")
		text, err := os.ReadFile("balancer/haproxy.cfg")
		if err != nil {
			t.Fatal(err)
		}

		if err := os.WriteFile(config, []byte(strings.Replace(string(text), " ssl crt /run/secrets/tls", "", 1)),
			0o600); err != nil {
			t.Fatal(err)
		}

		mustRun(t, haproxy, "-c", "-f", config)
	})

	t.Run("prometheus", func(t *testing.T) {
		mustRun(t, lookTool(t, "promtool"), "check", "config", "--syntax-only", "compose/prometheus.yaml")
	})
}

// TestANodeEndsBehindTheBalancer stops a fanout node behind HAProxy with compose's configuration,
// changed only in addresses and TLS. The node drains and ends; no request meanwhile is refused.
func TestANodeEndsBehindTheBalancer(t *testing.T) {
	haproxy := lookTool(t, "haproxy")
	first, second := serve(t, "TRUNKLINE_TLS_MODE=off"), serve(t, "TRUNKLINE_TLS_MODE=off")
	address := startBalancer(t, haproxy, first, second)

	// One connection per request, so that the balancer chooses a node for each.
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	ask := func() error {
		_, err := get(client, "http://"+address+"/ws/v1/cc_events/health")
		return err
	}

	eventually(t, "the balancer", ask)
	requests := 0
	mustAnswer := func(what string) {
		t.Helper()
		if err := ask(); err != nil {
			t.Fatalf("request %d, %s: %v", requests, what, err)
		}
		requests++
	}

	for range 20 {
		mustAnswer("both there")
	}

	if err := first.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}

	for running := true; running; {
		mustAnswer("one draining")
		select {
		case <-first.ended:
			running = false
		default:
		}
	}

	for range 100 {
		mustAnswer("one gone")
	}

	t.Logf("%d requests, none refused", requests)
}

// startBalancer starts HAProxy with compose's configuration, changed only in addresses and TLS.
func startBalancer(t *testing.T, haproxy string, first, second server) (address string) {
	t.Helper()
	address = freeport.Address(t)
	config, err := balancer.LocalFleet{Listen: address, Fanout: []balancer.Node{
		{Public: first.public, Metrics: first.metrics}, {Public: second.public, Metrics: second.metrics},
	}, Core: balancer.Node{Public: second.public, Metrics: second.metrics}}.HAProxy()
	if err != nil {
		t.Fatal(err)
	}

	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}

	startChild(t, os.Environ(), haproxy, "-f", file)
	return address
}

// TestNobodyForgesAnAddressThroughTheBalancer sends requests from the balancer's own address,
// which the server trusts, so that the server would accept any address added to the forwarding
// chain.
func TestNobodyForgesAnAddressThroughTheBalancer(t *testing.T) {
	haproxy := lookTool(t, "haproxy")
	node := serve(t, "TRUNKLINE_TLS_MODE=off", "TRUNKLINE_TRUSTED_PROXIES=127.0.0.1")

	address := startBalancer(t, haproxy, node, node)
	eventually(t, "the balancer", func() error {
		_, err := get(http.DefaultClient, "http://"+address+"/ws/v1/cc_events/health")
		return err
	})

	request := func(method, address, path, body string, header http.Header) (status int, answer []byte) {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}

		r.Header = header
		r.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()

		answer, err = io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}

		return response.StatusCode, answer
	}

	login := func(password string) string {
		return fmt.Sprintf(`{"username":"admin","password":%q,"domain":"demo.local"}`, password)
	}
	forged := http.Header{"X-Forwarded-For": {"203.0.113.66", "203.0.113.67, 127.0.0.1"},
		"Forwarded": {"for=203.0.113.68"}}
	if status, answer := request(http.MethodPost, address, "/ucp/v2/login", login("a wrong password"),
		forged); status != http.StatusUnauthorized {
		t.Fatalf("a wrong password gets %d %s", status, answer)
	}

	var granted struct {
		Token string `json:"access_token"`
	}
	if _, answer := request(http.MethodPost, node.public, "/ucp/v2/login", login(password),
		http.Header{}); json.Unmarshal(answer, &granted) != nil || granted.Token == "" {
		t.Fatalf("logging in: %s", answer)
	}

	now := time.Now().Unix()
	path := fmt.Sprintf("/api/v2/audit?startDate=%d&endDate=%d&action=login_failed", now-600, now+600)
	eventually(t, "the audit log", func() error {
		_, answer := request(http.MethodGet, node.public, path, "",
			http.Header{"Authorization": {"Bearer " + granted.Token}})
		var page struct {
			Data []struct {
				Address string `json:"address"`
			} `json:"data"`
		}
		if err := json.Unmarshal(answer, &page); err != nil || len(page.Data) == 0 {
			return fmt.Errorf("%s", answer)
		}
		if got := page.Data[0].Address; got != "127.0.0.1" {
			t.Fatalf("the client's address is forged: %s", got)
		}

		return nil
	})
}
