package webhook_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/internal/clitest"
	"trunkline/cmd/trunkline/savedlogin"
	"trunkline/cmd/trunkline/webhook"
	"trunkline/event"
	"trunkline/settings"
)

const password = "a password of the demo"

type shown struct {
	ID, URL, Format, Secret, Status string
	AccountID                       string `json:"account_id"`
	Filters                         map[string][]string
}

// The commands manage a webhook of a running server from creation to deletion.
func TestWebhookCommands(t *testing.T) {
	e := clitest.New(t, "trunkline", func(p *cli.Program) []*cobra.Command {
		return []*cobra.Command{savedlogin.LoginCommand(p), webhook.Command(p)}
	})
	e.Environ = []string{"HOME=" + t.TempDir(), "TRUNKLINE_PASSWORD=" + password}
	const url = "https://crm.example.com/hook"
	e.MustFail(cli.ExitUsage, "run trunkline login", "webhook", "list")
	e.Serve(func(s *settings.Settings) { s.DemoPassword, s.Kafka.Partitions = password, 1 })
	e.MustRun("login", "--username", "bob", "--domain", "demo.local")
	e.MustFail(cli.ExitFailed, "403", "webhook", "create", url)
	e.MustRun("login", "--username", "admin", "--domain", "demo.local")

	code, out, errs := e.Run("webhook", "create", url, "--queue", "sales,support", "--name", "queue.*")
	id := strings.TrimSpace(out)
	if code != cli.ExitOK || len(id) != 32 || !strings.HasPrefix(errs, "secret of "+id+": whsec_") {
		t.Fatalf("create: exit code %d, stdout %q, stderr %q", code, out, errs)
	}

	var second shown
	e.Stdin = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"
	e.MustJSON(&second, "webhook", "create", url, "--format", "cloudevents", "--secret-stdin", "--json")

	if second.Format != "cloudevents" || second.Secret != "" || second.AccountID != "demo" {
		t.Errorf("create --json prints %+v", second)
	}

	e.Stdin = "\n"
	e.MustFail(cli.ExitUsage, "no secret on stdin", "webhook", "create", url, "--secret-stdin")
	e.MustFail(cli.ExitFailed, "must begin with https", "webhook", "create", "http://crm.example.com")
	e.MustFail(cli.ExitFailed, "404", "webhook", "list", "--account", "nowhere")

	if out := e.MustRun("webhook", "list"); !strings.HasPrefix(out, "ID ") ||
		!strings.Contains(out, id+"  active  trunkline    "+url) {
		t.Errorf("list prints %s", out)
	}
	if out := e.MustRun("webhook", "list", "--json"); strings.Count(out, "\n") != 2 ||
		!strings.Contains(out, second.ID) {
		t.Errorf("list --json prints %s", out)
	}
	if out := e.MustRun("webhook", "update", id, "--url", url+"2", "--queue", "", "--agent",
		"1001"); !strings.Contains(out, "agent         1001\n") {
		t.Errorf("update prints %s", out)
	}

	var got shown
	e.MustJSON(&got, "webhook", "show", id, "--json")
	if got.URL != url+"2" || got.Format != "trunkline" || len(got.Filters) != 2 ||
		got.Filters["agent_ids"][0] != "1001" || got.Filters["names"][0] != "queue.*" {
		t.Errorf("after update show prints %+v", got)
	}
	if out := e.MustRun("webhook", "show", id); !strings.Contains(out, "status        active\n") ||
		strings.Contains(out, "paused") {
		t.Errorf("show prints %s", out)
	}
	if out := e.MustRun("webhook", "retry", id, "--json"); json.Unmarshal([]byte(out), &got) != nil ||
		got.Status != "active" {
		t.Errorf("retry prints %s", out)
	}

	e.MustFail(cli.ExitUsage, "--since", "webhook", "retry", id, "--since", "yesterday")
	e.MustFail(cli.ExitFailed, "410", "webhook", "retry", id, "--since", event.FirstID(time.Now(), 0).String())
	if out := e.MustRun("webhook", "delete", id); out != "" {
		t.Errorf("delete prints %q", out)
	}

	for _, command := range []string{"show", "update", "delete", "retry"} {
		e.MustFail(cli.ExitFailed, "404", "webhook", command, id)
	}
}
