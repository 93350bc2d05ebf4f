package deploy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// query is one query of a dashboard or an alert.
type query struct{ source, expr string }

type dashboard struct {
	UID, Title string
	Panels     []struct {
		Type, Title string
		GridPos     struct{ X, Y, W, H int }
		Datasource  struct{ UID string }
		Targets     []struct{ Expr string }
	}
	Templating struct {
		List []struct{ Name, Type string }
	}
	Annotations struct {
		List []struct{ Name, Expr string }
	}
}

func dashboards(t testing.TB) (all []dashboard) {
	t.Helper()
	files, err := filepath.Glob("helm/trunkline/files/dashboards/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}

	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}

		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}

		all = append(all, d)
	}

	return all
}

// variables replaces Grafana's variables.
var variables = strings.NewReplacer("$__rate_interval", "15s", "$job", ".+", "$instance", ".+")

// panelQueries returns the queries of all panels.
func panelQueries(t testing.TB) (all []query) {
	t.Helper()
	for _, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				all = append(all, query{d.Title + ": " + p.Title, variables.Replace(target.Expr)})
			}
		}
	}
	return all
}

// otherQueries returns the queries of annotations and alerts, most of which have no data.
func otherQueries(t testing.TB) (all []query) {
	t.Helper()
	for _, d := range dashboards(t) {
		for _, a := range d.Annotations.List {
			all = append(all, query{d.Title + ": " + a.Name, variables.Replace(a.Expr)})
		}
	}

	for _, r := range rules(t) {
		all = append(all, query{"alert " + r.Alert, r.Expr})
	}

	return all
}

type rule struct {
	Alert, Expr         string
	Labels, Annotations map[string]string
}

const rulesFile = "helm/trunkline/files/trunkline.rules.yaml"

func rules(t testing.TB) (all []rule) {
	t.Helper()
	text, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}

	var file struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}

	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}

	if len(all) == 0 {
		t.Fatal("no rules")
	}

	return all
}

func TestDashboardsAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range dashboards(t) {
		if d.UID == "" || seen[d.UID] {
			t.Errorf("%s: uid %q is empty or used twice", d.Title, d.UID)
		}

		seen[d.UID] = true
		var variables []string
		for _, v := range d.Templating.List {
			variables = append(variables, v.Name)
		}

		if !slices.Equal(variables, []string{"datasource", "job", "instance"}) {
			t.Errorf("%s has the variables %v", d.Title, variables)
		}

		for i, p := range d.Panels {
			if p.Type != "row" && (len(p.Targets) == 0 || p.Datasource.UID != "${datasource}") {
				t.Errorf("%s: %s asks nothing, or a fixed source", d.Title, p.Title)
			}
			if p.GridPos.X+p.GridPos.W > 24 {
				t.Errorf("%s: %s stands out of the page", d.Title, p.Title)
			}

			for _, q := range d.Panels[:i] {
				a, b := p.GridPos, q.GridPos
				if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
					t.Errorf("%s: %s lies on %s", d.Title, p.Title, q.Title)
				}
			}
		}
	}
}

// TestAlertsLead checks that each alert has a severity, leads to its section of docs/runbook.md, which
// TestRunbook writes, and has a promtool test that fires it.
func TestAlertsLead(t *testing.T) {
	fired := firedByTests(t)
	for _, r := range rules(t) {
		if severity := r.Labels["severity"]; severity != "critical" && severity != "warning" {
			t.Errorf("%s: severity %q", r.Alert, severity)
		}
		if r.Annotations["summary"] == "" {
			t.Errorf("%s has no summary", r.Alert)
		}

		anchor, ok := strings.CutPrefix(r.Annotations["runbook_url"], "docs/runbook.md#")
		if !ok || anchor != strings.ToLower(r.Alert) {
			t.Errorf("%s: %q leads to no section", r.Alert, r.Annotations["runbook_url"])
		}
		if !fired[r.Alert] {
			t.Errorf("%s: no test in alerts/tests fires it", r.Alert)
		}
	}
}

func firedByTests(t *testing.T) map[string]bool {
	t.Helper()
	fired := map[string]bool{}
	for _, file := range alertTests(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}

		var suite struct {
			Tests []struct {
				Cases []struct {
					Alert string           `yaml:"alertname"`
					Fires []map[string]any `yaml:"exp_alerts"`
				} `yaml:"alert_rule_test"`
			}
		}
		if err := yaml.Unmarshal(text, &suite); err != nil {
			t.Fatalf("%s: %v", file, err)
		}

		for _, one := range suite.Tests {
			for _, c := range one.Cases {
				fired[c.Alert] = fired[c.Alert] || len(c.Fires) > 0
			}
		}
	}

	return fired
}

func alertTests(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("alerts/tests/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests of alerts: %v", err)
	}
	return files
}

func TestPromtoolAcceptsTheRules(t *testing.T) {
	promtool := lookTool(t, "promtool")
	mustRun(t, promtool, "check", "rules", rulesFile)
	mustRun(t, promtool, append([]string{"test", "rules"}, alertTests(t)...)...)
}
