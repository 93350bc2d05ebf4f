package deploy_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"trunkline/internal/freeport"
)

// metricsWithoutData lists metrics that have no data after the demonstration and useMoreFeatures,
// with what they need. An unnecessary entry fails the test.
var metricsWithoutData = map[string]string{
	"trunkline_aisession_first_audio_seconds_bucket": "a call to an AI provider",
	"trunkline_aisession_turn_gap_seconds_bucket":    "a call to an AI provider",

	"trunkline_feed_connected":                "a feed",
	"trunkline_feed_events_total":             "a feed",
	"trunkline_feed_bytes_total":              "a feed",
	"trunkline_feed_spool_bytes":              "a feed",
	"trunkline_feed_oldest_unsent_seconds":    "a feed",
	"trunkline_feed_holes_total":              "a feed",
	"trunkline_feed_dropped_total":            "a feed",
	"trunkline_feed_resync_differences_total": "a feed",

	"trunkline_webhook_request_seconds": "a webhook",

	"trunkline_origination_freeswitch_connected":           "origination.driver freeswitch",
	"trunkline_origination_freeswitch_originates_total":    "origination.driver freeswitch",
	"trunkline_origination_freeswitch_gone_total":          "origination.driver freeswitch",
	"trunkline_origination_freeswitch_queued":              "origination.driver freeswitch",
	"trunkline_origination_freeswitch_queue_refused_total": "origination.driver freeswitch",
	"trunkline_origination_freeswitch_sessions_per_second": "origination.driver freeswitch",
	"trunkline_origination_asterisk_connected":             "origination.driver asterisk",
	"trunkline_origination_asterisk_originates_total":      "origination.driver asterisk",
	"trunkline_origination_asterisk_gone_total":            "origination.driver asterisk",
	"trunkline_esl_commands_total":                         "origination.driver freeswitch",
	"trunkline_esl_connections_ended_total":                "origination.driver freeswitch",
}

// TestPrometheus scrapes the program under demonstration traffic with a real Prometheus, once
// with classic histograms, which are the default, and once with native ones. Every panel must
// have data, every rule be evaluated, and no alert fire.
func TestPrometheus(t *testing.T) {
	prometheus := lookTool(t, "prometheus")
	s := serve(t, "TRUNKLINE_ORIGINATION_DRIVER=auto", "TRUNKLINE_STATS_MAX_LABEL_SETS=100")
	startChild(t, s.settings, program(t), "demo", "--rate", "50")
	startChild(t, append(s.settings, "TRUNKLINE_PASSWORD="+password), program(t),
		"listen", "--username", "alice", "--domain", "demo.local", "--json")

	both := map[string]prometheusServer{
		"classic histograms": startPrometheus(t, prometheus, s.metrics),
		"native histograms":  startPrometheus(t, prometheus, s.metrics, "--enable-feature=native-histograms"),
	}
	for name, p := range both {
		eventually(t, "a first scrape, "+name, func() error { return p.expectData("trunkline_build_info") })
	}

	useMoreFeatures(t, s) // an increase is visible only after an earlier scrape of the series
	for name, p := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p.checkPanels(t, panelQueries(t))
			eventually(t, "every rule to be evaluated", p.checkRules)
		})
	}
}

// useMoreFeatures uses features that the demonstration does not: a portal login, a click to call, a
// report, a recording.
func useMoreFeatures(t *testing.T, s server) {
	t.Helper()
	pem, err := os.ReadFile(filepath.Join(s.data, "tls", "cert.pem"))
	if err != nil {
		t.Fatal(err)
	}

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)

	client := &http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	ask := func(method, path, token string, body io.Reader, answer any) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, "https://"+s.public+path, body)
		if err != nil {
			t.Fatal(err)
		}

		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
			request.Header.Set("X-Account-ID", "demo")
		}

		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()

		text, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode >= 300 {
			t.Fatalf("%s %s: %s %s %v", method, path, response.Status, text, err)
		}

		if answer != nil {
			if err := json.Unmarshal(text, answer); err != nil {
				t.Fatal(err)
			}
		}
	}

	login := func(username string) string {
		t.Helper()
		body, err := json.Marshal(map[string]string{"username": username, "password": password, "domain": "demo.local"})
		if err != nil {
			t.Fatal(err)
		}

		var tokens struct {
			Access string `json:"access_token"`
		}
		ask(http.MethodPost, "/ucp/v2/login", "", bytes.NewReader(body), &tokens)

		return tokens.Access
	}

	alice := login("alice")
	ask(http.MethodPost, "/ucp/v2/c2c/1002", alice, nil, nil)
	now := time.Now().Unix()
	ask(http.MethodGet, fmt.Sprintf("/api/v2/reports/cdrs?startDate=%d&endDate=%d", now-3600, now), alice, nil, nil)
	ask(http.MethodPut, "/api/v2/recordings/visit", login("admin"), strings.NewReader("audio"), nil)
}

// prometheusServer is a running Prometheus.
type prometheusServer struct{ url string }

func startPrometheus(t *testing.T, program, target string, flags ...string) prometheusServer {
	t.Helper()
	dir := t.TempDir()
	rules, err := filepath.Abs(rulesFile)
	if err != nil {
		t.Fatal(err)
	}

	config := filepath.Join(dir, "prometheus.yaml")
	text := fmt.Sprintf(`
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs: [{job_name: trunkline, static_configs: [{targets: [%q]}]}]
`, rules, target)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	address := freeport.Address(t)
	startChild(t, os.Environ(), program, append([]string{
		"--config.file=" + config, "--storage.tsdb.path=" + filepath.Join(dir, "data"),
		"--web.listen-address=" + address, "--log.level=warn",
	}, flags...)...)

	return prometheusServer{"http://" + address}
}

func (p prometheusServer) get(path string, answer any) error {
	text, err := get(http.DefaultClient, p.url+path)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), answer)
}

// checkPanels waits until every query has returned data once, except those of metricsWithoutData.
func (p prometheusServer) checkPanels(t *testing.T, queries []query) {
	t.Helper()
	waiting := queries
	eventually(t, "data in every panel", func() error {
		var still, missing []query
		for _, q := range waiting {
			has, err := p.hasData(q.expr)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", q.source, q.expr, err)
			}

			if has {
				continue
			}

			still = append(still, q)
			if q.metricsIn(metricsWithoutData) == nil {
				missing = append(missing, q)
			}
		}

		waiting = still
		if len(missing) > 0 {
			return fmt.Errorf("%d queries have none: %q", len(missing), missing)
		}

		return nil
	})

	needed := map[string]bool{}
	for _, q := range waiting {
		for _, metric := range q.metricsIn(metricsWithoutData) {
			needed[metric] = true
		}
	}

	for metric := range metricsWithoutData {
		if !needed[metric] {
			t.Errorf("%s has data, or no query uses it: remove it from the list", metric)
		}
	}
}

// metricsIn returns the entries of metrics for the metrics of a query.
func (q query) metricsIn(metrics map[string]string) (found []string) {
	asked, err := parseNames(q.expr)
	if err != nil {
		return nil // Prometheus reports the error
	}

	for _, s := range asked.selectors {
		if metrics[s.metric] != "" {
			found = append(found, s.metric)
		}
	}

	return found
}

func (p prometheusServer) expectData(expr string) error {
	has, err := p.hasData(expr)
	if err == nil && !has {
		err = errors.New("no data")
	}
	return err
}

func (p prometheusServer) hasData(expr string) (bool, error) {
	var answer struct {
		Data struct {
			Result []struct {
				Value     []any
				Histogram []any
			}
		}
	}
	if err := p.get("/api/v1/query?query="+url.QueryEscape(expr), &answer); err != nil {
		return false, err
	}

	for _, one := range answer.Data.Result {
		if len(one.Histogram) == 2 {
			return true, nil
		}

		text, _ := one.Value[1].(string)
		if value, err := strconv.ParseFloat(text, 64); err != nil || !math.IsNaN(value) {
			return true, err
		}
	}

	return false, nil
}

func (p prometheusServer) checkRules() error {
	var answer struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, State, Health, LastError string }
			}
		}
	}
	if err := p.get("/api/v1/rules", &answer); err != nil {
		return err
	}
	if len(answer.Data.Groups) == 0 {
		return errors.New("no rules yet")
	}

	for _, group := range answer.Data.Groups {
		for _, rule := range group.Rules {
			fillsDisk := rule.Name == "TrunklineDiskFills" && rule.State == "pending" // as other programs may
			if rule.Health != "ok" || rule.State != "inactive" && !fillsDisk {
				return fmt.Errorf("%s is %s and %s %s", rule.Name, rule.Health, rule.State, rule.LastError)
			}
		}
	}

	return nil
}
