package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/internal/clitest"
	"trunkline/settings"
)

func newRunner(t *testing.T) *clitest.Runner {
	return clitest.New(t, "trunkline", func(p *cli.Program) []*cobra.Command {
		return commands(p,
			func(context.Context, *settings.Settings, *slog.Logger) error { return errors.New("served") })
	})
}

func TestWrongUsage(t *testing.T) {
	w := newRunner(t)
	w.Environ = []string{"HOME=" + t.TempDir()}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"trunkline: needs a command, one of serve, ", nil},
		{`trunkline: has no command "srve": want one of serve, `, []string{"srve"}},
		{`account has no command "make": want one of create, list, otp, delete`, []string{"account", "make"}},
		{"trunkline: account needs a command, one of create, list, otp, delete", []string{"account"}},
		{"unknown flag: --lsten", []string{"serve", "--lsten", "x"}},
		{"want a duration such as", []string{"serve", "--drain-timeout", "x"}},
		{`version does not take "x"`, []string{"version", "x"}},
		{"trunkline: account create needs NAME", []string{"account", "create"}},
		{"account create needs --domain", []string{"account", "create", "n"}},
		{"user create needs --account", []string{"user", "create", "u"}},
		{`--role is admin, supervisor, agent, auditor, user, not "boss"`,
			[]string{"user", "create", "u", "--account", "a", "--role", "boss"}},
		{"there is no password on stdin", []string{"user", "create", "u", "--account", "a", "--password-stdin"}},
		{"user delete needs --account", []string{"user", "delete", "u"}},
		{"apikey create needs --account", []string{"apikey", "create"}},
		{"--limit must be at least 1", []string{"deadletter", "list", "--limit", "0"}},
		{"name positions, as deadletter list shows them, or --all", []string{"deadletter", "retry"}},
		{"name positions, as deadletter list shows them, or --all", []string{"deadletter", "retry", "--all", "0:1"}},
		{`"x" is not a position`, []string{"deadletter", "retry", "x"}},
		{`--topic is cc.raw or cdr.raw, not "cc.evt"`, []string{"deadletter", "retry", "--all", "--topic", "cc.evt"}},
		{"there is no login: run trunkline login", []string{"listen"}},
		{"--username and --domain belong together", []string{"listen", "--username", "u"}},
		{"listen needs a password: set TRUNKLINE_PASSWORD, or give --password-stdin",
			[]string{"listen", "--username", "u", "--domain", "d"}},
		{"--rate must be above 0", []string{"demo", "--rate", "0"}},
		{"--url must be https://host:port", []string{"demo", "--url", "https://u:p@x"}},
	} {
		w.MustFail(cli.ExitUsage, c.want, c.args...)
	}
}

func TestConfigCheck(t *testing.T) {
	w := newRunner(t)
	file := filepath.Join(w.Dir, "t.yaml")
	if err := os.WriteFile(file, []byte("listen: \":1\"\nredis:\n  address: r:6379\n  password: hush\n"),
		0o600); err != nil {
		t.Fatal(err)
	}

	w.Environ = []string{"TRUNKLINE_PORT=tcp://1", "TRUNKLINE_PASSWORD=x", "TRUNKLINE_METRICS_LISTEN=:2"}
	code, out, errs := w.Run("config", "check", "--config", file, "--drain_timeout", "5s")
	if code != cli.ExitOK || errs != "trunkline: warning: TRUNKLINE_PORT is not a setting\n" {
		t.Errorf("exit code %d, stderr %q", code, errs)
	}

	for _, line := range []string{"listen: :1 # public", "\nmetrics_listen: :2 #", "\ndrain_timeout: 5s #",
		"\n  password: '********' #", "\ndata_dir: " + w.Dir + " #"} {
		if !strings.Contains(out, line) {
			t.Errorf("%q is not in\n%s", line, out)
		}
	}

	if err := os.WriteFile(file, []byte("\nlstn: x\ndrain_timeout: soon\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	w.Environ = nil
	code, out, errs = w.Run("config", "check", "--config", file)
	want := "trunkline: " + file + ":2: lstn: unknown key\n" +
		"trunkline: " + file + ":3: drain_timeout: want a duration such as 20s, 5m or 24h\n"
	if code != cli.ExitUsage || out != "" || errs != want {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, out, errs)
	}
}

func TestServe(t *testing.T) {
	w := newRunner(t)
	w.Environ = []string{"TRUNKLINE_PORT=tcp://1", "TRUNKLINE_LOG_FORMAT=json"}
	code, _, errs := w.Run("serve")
	if code != cli.ExitFailed || !strings.Contains(errs, `"name":"TRUNKLINE_PORT"`) ||
		!strings.Contains(errs, "trunkline: served\n") {
		t.Errorf("exit code %d, stderr %q", code, errs)
	}
	w.MustFail(cli.ExitUsage, "roles: want ingest, ", "serve", "--roles", "boss")
}

func TestHelpShowsTheSettingsWhereTheyMatter(t *testing.T) {
	w := newRunner(t)
	if help := w.MustRun("serve", "--help"); !strings.Contains(help, "--kafka.brokers list") {
		t.Error(help)
	}
	if help := w.MustRun("user", "list", "--help"); strings.Contains(help, "--kafka.brokers") ||
		!strings.Contains(help, "--data_dir") {
		t.Error(help)
	}
}

func TestVersion(t *testing.T) {
	out := newRunner(t).MustRun("version")
	if lines := strings.Split(out, "\n"); len(lines) != 5 || !strings.HasPrefix(lines[0], "trunkline ") ||
		!strings.HasPrefix(lines[1], "commit ") || !strings.HasPrefix(lines[2], "date ") ||
		!strings.HasPrefix(lines[3], "go1.") {
		t.Errorf("prints %q", out)
	}
}
