package audit

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"trunkline/app/backend"
	"trunkline/cmd/internal/cli"
	"trunkline/cmd/internal/clitest"
	"trunkline/cmd/trunkline/directory"
	"trunkline/internal/retry"
	"trunkline/settings"
)

func TestVerify(t *testing.T) {
	var program *cli.Program
	w := clitest.New(t, "trunkline", func(p *cli.Program) []*cobra.Command {
		program = p
		return []*cobra.Command{Command(p), directory.AccountCommand(p), directory.UserCommand(p)}
	})

	w.MustRun("account", "create", "acme", "--domain", "acme.example", "--id", "acme")
	if out := w.MustRun("audit", "verify"); !strings.HasPrefix(out,
		"entries 1 to 0 are as they were written, 1 are not chained yet\n") {
		t.Errorf("without a server verify prints %q", out)
	}

	s := w.Serve(func(s *settings.Settings) { s.DemoPassword = "" })
	var head string
	for {
		out := w.MustRun("audit", "verify")
		if strings.HasPrefix(out, "entries 1 to 1 are as they were written, 0 ") {
			_, head, _ = strings.Cut(strings.TrimSpace(out), "head ")
			break
		}
		retry.Sleep(t.Context(), 100e6)
	}

	w.MustRun("user", "create", "alice", "--account", "acme")
	w.MustRun("audit", "verify", "--head", head)
	w.MustFail(cli.ExitUsage, "--head is SEQ:HASH", "audit", "verify", "--head", "1")

	db, err := backend.OpenDatabase(t.Context(), s, program.ToolLog())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()

	var actor string
	if err := db.QueryRowContext(t.Context(),
		`SELECT actor FROM audit_entries WHERE seq = 1`).Scan(&actor); err != nil ||
		!strings.HasPrefix(actor, "cli:") || actor == "cli:" {
		t.Errorf("the actor is %q, %v", actor, err)
	}

	if _, err := db.ExecContext(t.Context(),
		`UPDATE audit_entries SET actor = 'cli:someone-else' WHERE seq = 1`); err != nil {
		t.Fatal(err)
	}

	w.MustFail(cli.ExitFailed, "entry 1 (id ", "audit", "verify")
}
