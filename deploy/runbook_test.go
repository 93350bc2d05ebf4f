package deploy_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write docs/runbook.md")

const runbook = "../docs/runbook.md"

// TestRunbook compares docs/runbook.md with the rules and the comments above them; -update writes it.
func TestRunbook(t *testing.T) {
	want := runbookPage(t)
	if *update {
		if err := os.WriteFile(runbook, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	got, err := os.ReadFile(runbook)
	if err != nil {
		t.Fatal(err)
	}

	if string(got) != want {
		t.Fatalf("docs/runbook.md is not what %s says (go test ./deploy -run Runbook -update writes the page)",
			rulesFile)
	}
}

// runbookPage returns docs/runbook.md: a section for each alert, in the order of the rules.
func runbookPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}

	var file struct {
		Groups []struct {
			Name  string
			Rules []yaml.Node
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}

	var page strings.Builder
	page.WriteString("# Runbook\n\nGenerated from the [alert rules](../" + "deploy/" + rulesFile +
		") by `go test ./deploy -run Runbook -update`.\n\n" +
		"What each alert means and what to do. `critical` needs somebody at once, `warning` on the same day. " +
		"`topic`, `kind` and similar words are labels of the alert; \"the log\" is the log of the node that the alert names. " +
		"Alerts of queues and agents that an account sets for itself are another thing: they are events.\n")

	for _, group := range file.Groups {
		for _, node := range group.Rules {
			page.WriteString(runbookSection(t, &node))
		}
	}

	return page.String()
}

func runbookSection(t *testing.T, node *yaml.Node) string {
	t.Helper()
	var r struct {
		Alert, Expr, For string
		Labels           map[string]string
	}
	if err := node.Decode(&r); err != nil {
		t.Fatal(err)
	}

	var advice strings.Builder
	for line := range strings.Lines(node.HeadComment) {
		advice.WriteString(strings.TrimPrefix(strings.TrimPrefix(line, "#"), " "))
	}

	if advice.Len() == 0 {
		t.Errorf("%s has no comment above it that says what to do", r.Alert)
	}

	lasting := ""
	if r.For != "" {
		lasting = " for " + r.For
	}

	return fmt.Sprintf("\n## %s\n\n%s, at `%s`%s.\n\n%s\n", r.Alert, r.Labels["severity"],
		strings.Join(strings.Fields(r.Expr), " "), lasting, strings.TrimSpace(advice.String()))
}
