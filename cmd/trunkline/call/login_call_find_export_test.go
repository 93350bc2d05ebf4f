package call_test

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/internal/clitest"
	"trunkline/cmd/trunkline/call"
	"trunkline/cmd/trunkline/cdr"
	"trunkline/cmd/trunkline/savedlogin"
	"trunkline/settings"
)

const password = "a password of the demo"

func newEnv(t *testing.T) *clitest.Runner {
	e := clitest.New(t, "trunkline", func(p *cli.Program) []*cobra.Command {
		return []*cobra.Command{savedlogin.LoginCommand(p), savedlogin.LogoutCommand(p), call.Command(p),
			cdr.Command(p)}
	})
	e.Environ = []string{"HOME=" + t.TempDir()}
	return e
}

// A saved login places a simulated call, finds its record, exports it, is renewed, and ends with
// logout.
func TestLoginCallFindExportLogout(t *testing.T) {
	e := newEnv(t)
	e.MustFail(cli.ExitUsage, "run trunkline login", "call", "1002")
	e.Serve(func(s *settings.Settings) { s.DemoPassword, s.Origination.Driver = password, "simulator" })
	e.MustFail(cli.ExitUsage, "TRUNKLINE_PASSWORD", "login", "--username", "alice", "--domain", "demo.local")
	e.Stdin = "wrong"
	e.MustFail(cli.ExitFailed, "401", "login", "--username", "alice", "--domain", "demo.local", "--password-stdin")
	e.Stdin = ""
	e.Environ = append(e.Environ, "TRUNKLINE_PASSWORD="+password)

	if out := e.MustRun("login", "--username", "alice", "--domain", "demo.local"); !strings.Contains(out,
		"as alice of account demo") {
		t.Errorf("login prints %q", out)
	}

	file := filepath.Join(e.Environ[0][len("HOME="):], ".config", "trunkline", "login.json")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: %v %v", file, info, err)
	}

	out := e.MustRun("call", "1002")
	for _, want := range []string{"ringing_user", "user_answered", "bridged", "ended  NORMAL_CLEARING", "hangup_cause",
		"media_server"} {
		if !strings.Contains(out, want) {
			t.Errorf("call prints no %q:\n%s", want, out)
		}
	}

	code, out, errs := e.Run("call", "9901", "--json")
	var busy struct {
		ID     string `json:"origination_call_id"`
		State  string
		Cause  string
		Record struct {
			HangupCause string `json:"hangup_cause"`
		}
	}
	if err := json.Unmarshal([]byte(out), &busy); err != nil || code != cli.ExitFailed || busy.Cause != "USER_BUSY" ||
		busy.Record.HangupCause == "" {
		t.Errorf("a busy destination: exit code %d, %q, %q, %v", code, out, errs, err)
	}

	if out := e.MustRun("cdr", "find", busy.ID); !strings.Contains(out, "USER_BUSY") || strings.Count(out, "\n") != 2 {
		t.Errorf("cdr find of one call prints %q", out)
	}

	e.MustFail(cli.ExitFailed, "404", "cdr", "find", "sim-nothing")
	e.MustFail(cli.ExitUsage, "--since", "cdr", "find", "--since", "yesterday")
	e.MustFail(cli.ExitUsage, "before", "cdr", "find", "--since", "1h", "--until", "2h")
	var rows []map[string]any

	for line := range strings.Lines(e.MustRun("cdr", "find", "--since", "1h", "--json", "--limit", "0")) {
		var row map[string]any
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}

	csvFile := filepath.Join(t.TempDir(), "calls.csv")
	e.MustRun("cdr", "export", "--since", "1h", "--output", csvFile)
	text, err := os.ReadFile(csvFile)
	if err != nil {
		t.Fatal(err)
	}

	records, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	if err != nil || len(records) != len(rows)+1 || len(rows) < 2 {
		t.Errorf("%d rows found, %d exported with the header: %v", len(rows), len(records), err)
	}

	if stdout := e.MustRun("cdr", "export", "--since", "1h", "--to", "9901"); strings.Count(stdout, "\n") < 2 ||
		!strings.Contains(stdout, "USER_BUSY") {
		t.Errorf("the export of one destination is %q", stdout)
	}

	expire(t, file)
	var commands sync.WaitGroup // both renew the session
	for range 2 {
		commands.Go(func() {
			if code, _, errs := e.Run("cdr", "find", busy.ID); code != cli.ExitOK {
				t.Errorf("a command with an expired token says %q", errs)
			}
		})
	}

	commands.Wait()

	e.MustRun("logout")
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("after logout: %v", err)
	}
}

// expire makes the saved access token appear expired.
func expire(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	var l map[string]any
	if err := json.Unmarshal(text, &l); err != nil {
		t.Fatal(err)
	}

	l["expires_at"] = time.Now().Unix()
	text, _ = json.Marshal(l)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
