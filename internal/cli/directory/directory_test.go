package directory

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"trunkline/internal/cli"
	"trunkline/internal/cli/clitest"
)

func newEnv(t *testing.T) *clitest.Env {
	return clitest.New(t, "trunkline", func(p *cli.Program) []*cobra.Command {
		return []*cobra.Command{AccountCommand(p), UserCommand(p), APIKeyCommand(p)}
	})
}

func TestDirectoryCommands(t *testing.T) {
	w := newEnv(t)
	if out := w.Must("account", "create", "Head Office", "--domain", "head.example", "--id", "head"); out != "head\n" {
		t.Errorf("account create prints %q", out)
	}
	branch := strings.TrimSpace(w.Must("account", "create", "Branch", "--domain", "branch.example", "--parent", "head.example"))
	w.Fails(cli.ExitFailed, "creating account Other: ", "account", "create", "Other", "--domain", "head.example")

	code, out, errs := w.Run("user", "create", "alice", "--account", "head", "--presence-id", "1001", "--role", "admin")
	alice := strings.TrimSpace(out)
	if code != cli.ExitOK || alice == "" || !strings.HasPrefix(errs, "password of alice: ") {
		t.Errorf("user create exits with %d, prints %q, says %q", code, out, errs)
	}
	w.In = "correct horse battery\nmore\n"
	code, _, errs = w.Run("user", "create", "bob", "--account", branch, "--password-stdin")
	if code != cli.ExitOK || errs != "" {
		t.Errorf("user create --password-stdin exits with %d, says %q", code, errs)
	}
	key := strings.TrimSpace(w.Must("apikey", "create", "--account", "Branch", "--name", "pbx"))
	if key == "" || strings.ContainsAny(key, " \n") {
		t.Errorf("apikey create prints %q", key)
	}

	if out := w.Must("account", "list"); !strings.Contains(out, "Head Office") || !strings.HasPrefix(out, "ID ") {
		t.Errorf("account list prints %q", out)
	}
	var users []userRow
	w.List(&users, "user", "list", "--json")
	if len(users) != 2 {
		t.Errorf("user list gives %+v", users)
	}
	w.List(&users, "user", "list", "--json", "--account", "head")
	if len(users) != 1 || users[0].ID != alice || users[0].Role != "admin" || users[0].PresenceID != "1001" {
		t.Errorf("user list --account gives %+v", users)
	}
	var keys []apikeyRow
	w.List(&keys, "apikey", "list", "--json")
	if len(keys) != 1 || keys[0].AccountID != branch || keys[0].Name != "pbx" {
		t.Errorf("apikey list gives %+v", keys)
	}
	if out := w.Must("apikey", "list"); strings.Contains(out, key) {
		t.Error("apikey list shows the key")
	}

	w.Must("user", "delete", "alice", "--account", "head.example")
	w.Must("apikey", "delete", keys[0].ID)
	w.Fails(cli.ExitFailed, "deleting API key "+keys[0].ID, "apikey", "delete", keys[0].ID)
	w.Must("user", "delete", "bob", "--account", branch)
	w.Must("account", "delete", branch)
	var accounts []accountRow
	w.List(&accounts, "account", "list", "--json")
	if len(accounts) != 1 || accounts[0].ID != "head" || accounts[0].CreatedAt == 0 {
		t.Errorf("account list gives %+v", accounts)
	}
}
