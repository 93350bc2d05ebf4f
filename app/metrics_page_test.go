package app

import (
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/ingest/feed"
	"trunkline/settings"
)

var update = flag.Bool("update", false, "write docs/metrics.md")

const metricsPage = "../docs/metrics.md"

// described takes name, help and labels out of a description, which has no methods for them.
var described = regexp.MustCompile(
	`^Desc\{fqName: "(\w+)", help: ("(?:[^"\\]|\\.)*"), (?:unit: "\w*", )?constLabels: \{\}, variableLabels: \{(.*)\}\}$`)

// metricGroups are the sections of the page, with the prefixes of their metrics' names behind trunkline_.
var metricGroups = []struct {
	title    string
	prefixes []string
}{
	{"HTTP", []string{"api_"}},
	{"Logins, tokens, audit", []string{"identity_", "audit_"}},
	{"Ingest", []string{"ingest_"}},
	{"Feeds", []string{"feed_", "ami_", "esl_"}},
	{"Normalizer", []string{"normalizer_", "dead_"}},
	{"Events channel", []string{"fanout_"}},
	{"Call records", []string{"cdrindex_"}},
	{"Webhooks", []string{"webhook_"}},
	{"Figures", []string{"stats_", "figures_", "queue_"}},
	{"Recordings", []string{"recording_", "encryption_"}},
	{"Calls", []string{"origination_", "control_", "sip_", "rtp_"}},
	{"AI sessions", []string{"aisession_", "aiprovider_"}},
	{"Kafka", []string{"kafka_", "embedded_"}},
	{"The process", []string{""}},
}

// TestMetricsPage compares docs/metrics.md with the metrics that a server registers with each driver;
// -update writes it.
func TestMetricsPage(t *testing.T) {
	rows := map[string]string{}
	for _, driver := range []string{"auto", "freeswitch", "asterisk"} {
		maps.Copy(rows, metricRows(t, driver))
	}

	want := metricsReference(rows)
	if *update {
		if err := os.WriteFile(metricsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	got, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}

	gotLines := strings.Split(string(got), "\n")
	for i, line := range strings.Split(want, "\n") {
		if i >= len(gotLines) || gotLines[i] != line {
			t.Fatalf("docs/metrics.md, line %d: want %s\n(go test ./app -run MetricsPage -update writes the page)", i+1,
				line)
		}
	}

	if string(got) != want {
		t.Fatalf("docs/metrics.md has lines of metrics that do not exist (go test ./app -run MetricsPage -update writes the page)")
	}
}

// metricRows builds a server with every role and returns the rows of its metrics, by name.
func metricRows(t *testing.T, driver string) map[string]string {
	t.Helper()
	s := settings.Default()
	s.DataDir = t.TempDir()
	s.Listen = "127.0.0.1:0"
	s.MetricsListen = "127.0.0.1:0"
	s.Kafka.Embedded.Listen = ""
	s.SIP.Server.Listen = "127.0.0.1:0"
	s.Tracing.Endpoint = "http://127.0.0.1:1"
	s.Origination.Driver = driver
	s.Origination.FreeSWITCH.Address, s.Origination.FreeSWITCH.Password = "127.0.0.1:1", "p"
	s.Origination.Asterisk.Address = "127.0.0.1:1"
	s.Origination.Asterisk.Username = "u"
	s.Origination.Asterisk.Secret = "s"
	s.Feeds = []feed.Config{{Name: "pbx", Kind: feed.KindFreeSWITCH, Address: "127.0.0.1:1", Password: "p",
		Redundancy: 1, TimeZone: "UTC"}}
	s.Auth.OIDC.Issuer, s.Auth.OIDC.ClientID = "https://127.0.0.1:1", "trunkline"
	s.Stats.MaxLabelSets = 1
	a, err := New(t.Context(), Config{Settings: s, Log: slog.New(slog.DiscardHandler), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.lifecycle.closeAll(t.Context()); err != nil {
			t.Error(err)
		}
	}()

	descriptions := make(chan *prometheus.Desc)
	go func() {
		a.registry.Describe(descriptions)
		close(descriptions)
	}()

	rows := map[string]string{}
	for d := range descriptions {
		if !strings.Contains(d.String(), `fqName: "trunkline_`) {
			continue // of Go and of the process
		}

		found := described.FindStringSubmatch(d.String())
		if found == nil {
			t.Errorf("cannot read %s", d)
			continue
		}

		rows[found[1]] = metricRow(t, found[1], found[2], found[3])
	}

	return rows
}

func metricRow(t *testing.T, name, quoted, labels string) string {
	t.Helper()
	var help string
	if _, err := fmt.Sscanf(quoted, "%q", &help); err != nil {
		t.Errorf("help of %s: %v", name, err)
	}
	if help == "" {
		t.Errorf("%s has no help text", name)
	}

	return fmt.Sprintf("| `%s` | %s | %s |\n", name, strings.ReplaceAll(labels, ",", ", "),
		strings.ReplaceAll(strings.TrimSuffix(help, "."), "|", `\|`))
}

func metricsReference(rows map[string]string) string {
	var page strings.Builder
	page.WriteString(
		"# Metrics\n\nGenerated from the registered metrics by `go test ./app -run MetricsPage -update`.\n\n" +
			"They are at `/metrics` of `metrics_listen` (`http://127.0.0.1:9464/metrics`), with those of Go and of the process. " +
			"Histograms are native; `trunkline_fanout_delivery_latency_seconds` has classic buckets too. " +
			"The number of values of a label is bounded. Dashboards and alert rules use them: [runbook.md](runbook.md), [operations.md](operations.md#monitoring).\n")
	names := slices.Sorted(maps.Keys(rows))

	for _, group := range metricGroups {
		var table strings.Builder
		names = slices.DeleteFunc(names, func(name string) bool {
			for _, prefix := range group.prefixes {
				if strings.HasPrefix(name, "trunkline_"+prefix) {
					table.WriteString(rows[name])
					return true
				}
			}

			return false
		})

		fmt.Fprintf(&page, "\n## %s\n\n| metric | labels | meaning |\n|---|---|---|\n%s", group.title, table.String())
	}

	return page.String()
}
