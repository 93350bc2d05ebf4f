package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trunkline/config/settings"
)

// world runs command lines on one data directory.
type world struct {
	t   *testing.T
	dir string
	env []string
	in  string
}

func newWorld(t *testing.T) *world {
	return &world{t: t, dir: t.TempDir()}
}

// run executes one command line in this process.
func (w *world) run(args ...string) (code int, out, errs string) {
	w.t.Helper()
	return w.runContext(w.t.Context(), args...)
}

func (w *world) runContext(ctx context.Context, args ...string) (code int, out, errs string) {
	w.t.Helper()
	var stdout, stderr bytes.Buffer
	p := &program{
		in: strings.NewReader(w.in), out: &stdout, err: &stderr, env: w.env,
		serve: func(context.Context, *settings.Settings, *slog.Logger) error { return errors.New("served") },
	}
	code = p.run(ctx, append(args, "--data-dir", w.dir))
	return code, stdout.String(), stderr.String()
}

// must is what a command line that has to succeed prints.
func (w *world) must(args ...string) string {
	w.t.Helper()
	code, out, errs := w.run(args...)
	if code != exitOK {
		w.t.Fatalf("%q exits with %d: %s", args, code, errs)
	}
	return out
}

// fails expects an exit code and a single line on stderr that holds want.
func (w *world) fails(code int, want string, args ...string) {
	w.t.Helper()
	got, out, errs := w.run(args...)
	if got != code || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 || out != "" {
		w.t.Errorf("%q exits with %d, prints %q and says %q; want %d and %q", args, got, out, errs, code, want)
	}
}

func TestWrongUsage(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		want string
		args []string
	}{
		{"trunkline needs a command, one of serve, ", nil},
		{`trunkline has no command "srve": want one of serve, `, []string{"srve"}},
		{`account has no command "make": want one of create, list, delete`, []string{"account", "make"}},
		{"account needs a command, one of create, list, delete", []string{"account"}},
		{"unknown flag: --lsten", []string{"serve", "--lsten", "x"}},
		{"want a duration such as", []string{"serve", "--drain-timeout", "x"}},
		{`version does not take "x"`, []string{"version", "x"}},
		{"account create needs NAME", []string{"account", "create"}},
		{"account create needs --domain", []string{"account", "create", "n"}},
		{"user create needs --account", []string{"user", "create", "u"}},
		{`--role is user or admin, not "boss"`, []string{"user", "create", "u", "--account", "a", "--role", "boss"}},
		{"there is no password on stdin", []string{"user", "create", "u", "--account", "a", "--password-stdin"}},
		{"user delete needs --account", []string{"user", "delete", "u"}},
		{"apikey create needs --account", []string{"apikey", "create"}},
		{"--limit must be at least 1", []string{"deadletter", "list", "--limit", "0"}},
		{"name positions, as deadletter list shows them, or --all", []string{"deadletter", "retry"}},
		{"name positions, as deadletter list shows them, or --all", []string{"deadletter", "retry", "--all", "0:1"}},
		{`"x" is not a position`, []string{"deadletter", "retry", "x"}},
		{`--topic is cc.raw or cdr.raw, not "cc.evt"`, []string{"deadletter", "retry", "--all", "--topic", "cc.evt"}},
		{"listen needs --username", []string{"listen"}},
		{"listen needs a password: set TRUNKLINE_PASSWORD, or give --password-stdin", []string{"listen", "--username", "u", "--domain", "d"}},
		{"--rate must be above 0", []string{"demo", "--rate", "0"}},
		{"--url must be https://host:port", []string{"demo", "--url", "https://u:p@x"}},
	} {
		w.fails(exitUsage, c.want, c.args...)
	}
}

func TestConfigCheck(t *testing.T) {
	w := newWorld(t)
	file := filepath.Join(w.dir, "t.yaml")
	if err := os.WriteFile(file, []byte("listen: \":1\"\nredis:\n  address: r:6379\n  password: hush\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.env = []string{"TRUNKLINE_PORT=tcp://1", "TRUNKLINE_PASSWORD=x", "TRUNKLINE_METRICS_LISTEN=:2"}
	code, out, errs := w.run("config", "check", "--config", file, "--drain_timeout", "5s")
	if code != exitOK || errs != "trunkline: warning: TRUNKLINE_PORT is no setting\n" {
		t.Errorf("exits with %d, says %q", code, errs)
	}
	for _, line := range []string{"listen: :1 # public", "\nmetrics_listen: :2 #", "\ndrain_timeout: 5s #", "\n  password: '********' #", "\ndata_dir: " + w.dir + " #"} {
		if !strings.Contains(out, line) {
			t.Errorf("%q is not in\n%s", line, out)
		}
	}
	if err := os.WriteFile(file, []byte("\nlstn: x\ndrain_timeout: soon\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.env = nil
	code, out, errs = w.run("config", "check", "--config", file)
	want := "trunkline: " + file + ":2: lstn: unknown key\n" +
		"trunkline: " + file + ":3: drain_timeout: want a duration such as 20s, 5m or 24h\n"
	if code != exitUsage || out != "" || errs != want {
		t.Errorf("exits with %d, prints %q, says %q", code, out, errs)
	}
}

func TestServe(t *testing.T) {
	w := newWorld(t)
	w.env = []string{"TRUNKLINE_PORT=tcp://1", "TRUNKLINE_LOG_FORMAT=json"}
	code, _, errs := w.run("serve")
	if code != exitFailed || !strings.Contains(errs, `"name":"TRUNKLINE_PORT"`) || !strings.Contains(errs, "trunkline: served\n") {
		t.Errorf("exits with %d, says %q", code, errs)
	}
	w.fails(exitUsage, "roles: want ingest, ", "serve", "--roles", "boss")
}

func TestHelpShowsTheSettingsWhereTheyMatter(t *testing.T) {
	w := newWorld(t)
	if help := w.must("serve", "--help"); !strings.Contains(help, "--kafka.brokers list") {
		t.Error(help)
	}
	if help := w.must("user", "list", "--help"); strings.Contains(help, "--kafka.brokers") || !strings.Contains(help, "--data_dir") {
		t.Error(help)
	}
}

func TestVersion(t *testing.T) {
	out := newWorld(t).must("version")
	if lines := strings.Split(out, "\n"); len(lines) != 4 || !strings.HasPrefix(lines[0], "trunkline ") ||
		!strings.HasPrefix(lines[1], "commit ") || !strings.HasPrefix(lines[2], "go1.") {
		t.Errorf("prints %q", out)
	}
}

func TestDirectoryCommands(t *testing.T) {
	w := newWorld(t)
	if out := w.must("account", "create", "Head Office", "--domain", "head.example", "--id", "head"); out != "head\n" {
		t.Errorf("account create prints %q", out)
	}
	branch := strings.TrimSpace(w.must("account", "create", "Branch", "--domain", "branch.example", "--parent", "head.example"))
	w.fails(exitFailed, "creating account Other: ", "account", "create", "Other", "--domain", "head.example")

	code, out, errs := w.run("user", "create", "alice", "--account", "head", "--presence-id", "1001", "--role", "admin")
	alice := strings.TrimSpace(out)
	if code != exitOK || alice == "" || !strings.HasPrefix(errs, "password of alice: ") {
		t.Errorf("user create exits with %d, prints %q, says %q", code, out, errs)
	}
	w.in = "correct horse battery\nmore\n"
	code, _, errs = w.run("user", "create", "bob", "--account", branch, "--password-stdin")
	if code != exitOK || errs != "" {
		t.Errorf("user create --password-stdin exits with %d, says %q", code, errs)
	}
	key := strings.TrimSpace(w.must("apikey", "create", "--account", "Branch", "--name", "pbx"))
	if key == "" || strings.ContainsAny(key, " \n") {
		t.Errorf("apikey create prints %q", key)
	}

	if out := w.must("account", "list"); !strings.Contains(out, "Head Office") || !strings.HasPrefix(out, "ID ") {
		t.Errorf("account list prints %q", out)
	}
	var users []userRow
	w.list(&users, "user", "list", "--json")
	if len(users) != 2 {
		t.Errorf("user list gives %+v", users)
	}
	w.list(&users, "user", "list", "--json", "--account", "head")
	if len(users) != 1 || users[0].ID != alice || users[0].Role != "admin" || users[0].PresenceID != "1001" {
		t.Errorf("user list --account gives %+v", users)
	}
	var keys []apikeyRow
	w.list(&keys, "apikey", "list", "--json")
	if len(keys) != 1 || keys[0].AccountID != branch || keys[0].Name != "pbx" {
		t.Errorf("apikey list gives %+v", keys)
	}
	if out := w.must("apikey", "list"); strings.Contains(out, key) {
		t.Error("apikey list shows the key")
	}

	w.must("user", "delete", "alice", "--account", "head.example")
	w.must("apikey", "delete", keys[0].ID)
	w.fails(exitFailed, "deleting API key "+keys[0].ID, "apikey", "delete", keys[0].ID)
	w.must("user", "delete", "bob", "--account", branch)
	w.must("account", "delete", branch)
	var accounts []accountRow
	w.list(&accounts, "account", "list", "--json")
	if len(accounts) != 1 || accounts[0].ID != "head" || accounts[0].CreatedAt == 0 {
		t.Errorf("account list gives %+v", accounts)
	}
}

func (w *world) list(into any, args ...string) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(w.must(args...)), into); err != nil {
		w.t.Fatal(err)
	}
}
