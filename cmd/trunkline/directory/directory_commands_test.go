package directory

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/internal/clitest"
)

func newRunner(t *testing.T) *clitest.Runner {
	return clitest.New(t, "trunkline", func(p *cli.Program) []*cobra.Command {
		return []*cobra.Command{AccountCommand(p), UserCommand(p), APIKeyCommand(p), SigningKeyCommand(p)}
	})
}

func TestDirectoryCommands(t *testing.T) {
	w := newRunner(t)
	if out := w.MustRun("account", "create", "Head Office", "--domain", "head.example", "--id",
		"head"); out != "head\n" {
		t.Errorf("account create prints %q", out)
	}

	branch := strings.TrimSpace(
		w.MustRun("account", "create", "Branch", "--domain", "branch.example", "--parent", "head.example"))
	w.MustFail(cli.ExitFailed, "creating account Other: ", "account", "create", "Other", "--domain", "head.example")

	code, out, errs := w.Run("user", "create", "alice", "--account", "head", "--presence-id", "1001", "--role", "admin")
	alice := strings.TrimSpace(out)
	if code != cli.ExitOK || alice == "" || !strings.HasPrefix(errs, "password of alice: ") {
		t.Errorf("user create: exit code %d, stdout %q, stderr %q", code, out, errs)
	}

	w.Stdin = "correct horse battery\nmore\n"
	code, _, errs = w.Run("user", "create", "bob", "--account", branch, "--password-stdin")
	if code != cli.ExitOK || errs != "" {
		t.Errorf("user create --password-stdin: exit code %d, stderr %q", code, errs)
	}

	key := strings.TrimSpace(w.MustRun("apikey", "create", "--account", "Branch", "--name", "pbx"))
	if key == "" || strings.ContainsAny(key, " \n") {
		t.Errorf("apikey create prints %q", key)
	}

	if out := w.MustRun("account", "list"); !strings.Contains(out, "Head Office") || !strings.HasPrefix(out, "ID ") {
		t.Errorf("account list prints %q", out)
	}

	var users []userRow
	w.MustJSON(&users, "user", "list", "--json")
	if len(users) != 2 {
		t.Errorf("user list gives %+v", users)
	}

	w.MustJSON(&users, "user", "list", "--json", "--account", "head")
	if len(users) != 1 || users[0].ID != alice || users[0].Role != "admin" || users[0].PresenceID != "1001" {
		t.Errorf("user list --account gives %+v", users)
	}

	var keys []apikeyRow
	w.MustJSON(&keys, "apikey", "list", "--json")
	if len(keys) != 1 || keys[0].AccountID != branch || keys[0].Name != "pbx" {
		t.Errorf("apikey list gives %+v", keys)
	}
	if out := w.MustRun("apikey", "list"); strings.Contains(out, key) {
		t.Error("apikey list shows the key")
	}
	if got := scopeNames(keys[0].Scopes); !slices.Equal(got, []string{"ingest"}) || keys[0].ExpiresAt != 0 {
		t.Errorf("a key without --scope and --expires: %+v", keys[0])
	}

	w.Stdin = "correct horse battery\n"
	w.MustRun("user", "create", "carla", "--account", "head", "--role", "supervisor", "--queue", "sales", "--queue",
		"support", "--password-stdin")
	w.MustRun("user", "create", "dan", "--account", "head", "--role", "agent", "--agent", "1003@x", "--password-stdin")
	w.MustJSON(&users, "user", "list", "--json", "--account", "head")

	if len(users) != 3 || !slices.Equal(users[1].QueueIDs, []string{"sales", "support"}) ||
		users[1].Role != "supervisor" || !slices.Equal(users[2].AgentIDs, []string{"1003@x"}) ||
		users[2].Role != "agent" {
		t.Errorf("user list with roles gives %+v", users)
	}

	w.MustFail(cli.ExitFailed, "queue_ids is for the role supervisor", "user", "create", "eve", "--account", "head",
		"--queue", "sales", "--password-stdin")
	w.MustRun("user", "delete", "carla", "--account", "head")
	w.MustRun("user", "delete", "dan", "--account", "head")

	w.MustRun("user", "delete", "alice", "--account", "head.example")
	w.MustRun("apikey", "delete", keys[0].ID)
	w.MustFail(cli.ExitFailed, "deleting API key "+keys[0].ID, "apikey", "delete", keys[0].ID)
	w.MustRun("user", "delete", "bob", "--account", branch)
	w.MustRun("account", "delete", branch)
	var accounts []accountRow
	w.MustJSON(&accounts, "account", "list", "--json")

	if len(accounts) != 1 || accounts[0].ID != "head" || accounts[0].CreatedAt == 0 {
		t.Errorf("account list gives %+v", accounts)
	}
}

func TestUserPassword(t *testing.T) {
	w := newRunner(t)
	w.MustRun("account", "create", "Head", "--domain", "head.example", "--id", "head")
	w.MustRun("user", "create", "alice", "--account", "head")
	code, out, errs := w.Run("user", "password", "alice", "--account", "head")
	if code != cli.ExitOK || out != "" || !strings.HasPrefix(errs, "password of alice: ") {
		t.Errorf("user password: exit code %d, stdout %q, stderr %q", code, out, errs)
	}

	w.Stdin = "another long password, river\n"
	if code, _, errs := w.Run("user", "password", "alice", "--account", "head",
		"--password-stdin"); code != cli.ExitOK || errs != "" {
		t.Errorf("user password --password-stdin: exit code %d, stderr %q", code, errs)
	}

	w.Stdin = "password1\n"
	w.MustFail(cli.ExitFailed, "is too easy to guess", "user", "password", "alice", "--account", "head",
		"--password-stdin")
	w.Stdin = "short\n"
	w.MustFail(cli.ExitFailed, "has fewer than 8 characters", "user", "create", "bob", "--account", "head",
		"--password-stdin")
}

func TestDeviceCommands(t *testing.T) {
	w := newRunner(t)
	w.Environ = []string{"TRUNKLINE_MASTER_KEY=" + strings.Repeat("0123456789abcdef", 4)}
	w.MustRun("account", "create", "Head Office", "--domain", "head.example", "--id", "head")
	w.MustRun("user", "create", "alice", "--account", "head", "--presence-id", "1001")
	w.MustRun("user", "create", "admin", "--account", "head")
	password := strings.TrimSpace(
		w.MustRun("user", "device", "create", "alice", "--account", "head.example", "--name", "desk phone"))
	if len(password) < 26 || strings.ContainsAny(password, " \n") {
		t.Errorf("user device create prints %q", password)
	}

	w.MustFail(cli.ExitFailed, "creating a device of admin: ", "user", "device", "create", "admin", "--account", "head")
	w.MustFail(cli.ExitUsage, "--account", "user", "device", "create", "alice")
	var devices []deviceRow
	w.MustJSON(&devices, "user", "device", "list", "alice", "--account", "head", "--json")

	if len(devices) != 1 || devices[0].Name != "desk phone" || devices[0].CreatedAt == 0 {
		t.Errorf("user device list gives %+v", devices)
	}
	if out := w.MustRun("user", "device", "list", "alice", "--account", "head"); !strings.Contains(out, "desk phone") ||
		strings.Contains(out, password) {
		t.Errorf("user device list prints %q", out)
	}

	w.MustRun("user", "device", "delete", devices[0].ID)
	w.MustFail(cli.ExitFailed, "deleting device "+devices[0].ID, "user", "device", "delete", devices[0].ID)
}

func TestOTPCommands(t *testing.T) {
	w := newRunner(t)
	w.Environ = []string{"TRUNKLINE_MASTER_KEY=" + strings.Repeat("0f1e2d3c", 8)}
	w.MustRun("account", "create", "Head", "--domain", "head.example", "--id", "head")
	w.MustRun("user", "create", "lead", "--account", "head", "--role", "admin")
	w.MustRun("account", "otp", "head", "required")
	w.MustFail(cli.ExitUsage, "optional or required", "account", "otp", "head", "never")
	lines := strings.Split(strings.TrimSpace(w.MustRun("user", "otp", "enrol", "lead", "--account", "head")), "\n")
	if len(lines) != 11 || !strings.HasPrefix(lines[0], "otpauth://totp/") {
		t.Errorf("user otp enrol prints %d lines", len(lines))
	}

	w.MustRun("user", "otp", "delete", "lead", "--account", "head")
	w.MustFail(cli.ExitFailed, "There is no user", "user", "otp", "delete", "nobody", "--account", "head")
}

func TestSigningKeyRotate(t *testing.T) {
	w := newRunner(t)
	w.MustFail(cli.ExitFailed, "data_dir "+w.Dir+" has no embedded database", "signingkey", "rotate")
	w.MustRun("account", "create", "head", "--domain", "head.example")
	w.MustFail(cli.ExitFailed, "the master key is not available", "signingkey", "rotate")
	w.Environ = []string{"TRUNKLINE_MASTER_KEY=" + strings.Repeat("0f1e2d3c", 8)}
	first := strings.TrimSpace(w.MustRun("signingkey", "rotate"))
	second := strings.TrimSpace(w.MustRun("signingkey", "rotate", "--now"))
	if len(first) != 32 || len(second) != 32 || first == second {
		t.Errorf("signingkey rotate prints %q and %q", first, second)
	}
}

func TestAPIKeyScopesAndExpiry(t *testing.T) {
	w := newRunner(t)
	w.MustRun("account", "create", "Head", "--domain", "head.example", "--id", "head")
	w.MustRun("apikey", "create", "--account", "head", "--name", "wall", "--scope", "subscribe, read", "--expires",
		"90d")
	var keys []apikeyRow
	w.MustJSON(&keys, "apikey", "list", "--json")
	const life = 90 * 24 * 3600 // from before the key is created
	if len(keys) != 1 || !slices.Equal(scopeNames(keys[0].Scopes), []string{"subscribe", "read"}) ||
		keys[0].ExpiresAt-keys[0].CreatedAt > life || keys[0].ExpiresAt-keys[0].CreatedAt < life-60 {
		t.Errorf("apikey list gives %+v", keys)
	}
	if out := w.MustRun("apikey", "list"); !strings.Contains(out, "subscribe,read") ||
		!strings.Contains(out, "EXPIRES") {
		t.Errorf("apikey list prints %q", out)
	}

	w.MustFail(cli.ExitFailed, "unknown scope", "apikey", "create", "--account", "head", "--scope", "everything")
	w.MustFail(cli.ExitFailed, "at least one scope", "apikey", "create", "--account", "head", "--scope", "")
	for _, life := range []string{"90", "d", "-1d", "0d", "1.5d", "99999999999d", "36601d", "-1h", "soon"} {
		w.MustFail(cli.ExitUsage, "--expires", "apikey", "create", "--account", "head", "--expires="+life)
	}
}
