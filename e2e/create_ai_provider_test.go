package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// createProvider configures an AI provider of the demo account.
func (n *node) createProvider(t *testing.T, format string, rate int, address string) (id string) {
	t.Helper()
	header := map[string]string{"X-Account-ID": "demo", "Content-Type": typeJSON}
	for name, value := range n.dialler(t, "admin").header {
		header[name] = value
	}

	a := n.mustCall(t, http.MethodPost, "/api/v2/config/ai_providers", header, fmt.Sprintf(
		`{"name":"echo","media":{"audioFormat":%q,"sampleRate":%d},"websocket":{"url":%q,"headers":{"Authorization":"Bearer s3cret"}}}`,
		format, rate, address))
	var made struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(a.body, &made); err != nil || a.status != http.StatusCreated ||
		strings.Contains(string(a.body), "s3cret") {
		t.Fatalf("configuring a provider: %v", a)
	}

	a = n.mustCall(t, http.MethodPost, "/api/v2/config/ai_providers/"+made.ID+"/test", header, "")
	var report struct {
		OK     bool     `json:"ok"`
		Events []string `json:"events"`
	}
	if err := json.Unmarshal(a.body, &report); err != nil || !report.OK || report.Events[0] != "start" ||
		report.Events[len(report.Events)-1] != "hangup" {
		t.Fatalf("testing it: %v", a)
	}

	return made.ID
}

// configure configures a provider and returns its id.
func (n *node) configure(t *testing.T, document string) (id string) {
	t.Helper()
	header := map[string]string{"X-Account-ID": "demo", "Content-Type": typeJSON}
	for name, value := range n.dialler(t, "admin").header {
		header[name] = value
	}

	a := n.mustCall(t, http.MethodPost, "/api/v2/config/ai_providers", header, document)
	var made struct{ ID string }
	if err := json.Unmarshal(a.body, &made); err != nil || a.status != http.StatusCreated ||
		strings.Contains(string(a.body), "bot-secret-1") {
		t.Fatalf("configuring a bot: %v", a)
	}

	return made.ID
}

// createBot configures a provider that answers and returns its id.
func (n *node) createBot(t *testing.T, protocol, address, session string) (id string) {
	t.Helper()
	return n.configure(t, fmt.Sprintf(
		`{"name":"bot","media":{"audioFormat":"g711_ulaw","sampleRate":8000},"websocket":{"url":%q},"protocol":%q,"secret":"bot-secret-1","session":%s}`,
		address, protocol, session))
}
