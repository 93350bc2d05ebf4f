package audit

import (
	"bytes"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"

	"trunkline/internal/sqldb"
)

// The expressions of docs/security.md for fail2ban match real lines of refused
// logins, and find the address.
func TestTheFilterForFail2banMatches(t *testing.T) {
	page, err := os.ReadFile("../docs/security.md")
	check(t, err)
	_, filter, ok := strings.Cut(string(page), "failregex = ")
	filter, _, ended := strings.Cut(filter, "```")
	if !ok || !ended {
		t.Fatal("the page has no filter")
	}

	var expressions []*regexp.Regexp
	for line := range strings.Lines(filter) {
		line = strings.TrimSpace(line)
		if line != "" {
			expressions = append(expressions,
				regexp.MustCompile(strings.Replace(line, "<HOST>", `([0-9a-fA-F.:]+)`, 1)))
		}
	}

	for name, handler := range map[string]func(*bytes.Buffer) slog.Handler{
		"text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		"json": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
	} {
		var out bytes.Buffer
		n := newNode(t, sqldb.Config{Path: t.TempDir() + "/t.db"},
			func(_ *Settings, d *Deps) { d.Log = slog.New(handler(&out)) })

		for _, c := range []struct {
			entry  Entry
			banned bool
		}{
			{Entry{Action: LoginFailed, AccountID: "demo", Actor: "user:1", Address: "203.0.113.7",
				Outcome: "wrong_password"}, true},
			{Entry{Action: LoginFailed, Address: "2001:db8::7", Outcome: "unknown_user"}, true},
			{Entry{Action: LoginLocked, AccountID: "demo", Address: "203.0.113.7", Outcome: "limited"}, true},
			{Entry{Action: SIPRegisterFailed, AccountID: "demo", Actor: "sip:1001", Address: "203.0.113.7",
				Outcome: "wrong_password"}, true},
			{Entry{Action: Login, AccountID: "demo", Actor: "user:1", Address: "203.0.113.7", Outcome: OutcomeOK},
				false},
		} {
			out.Reset()
			e := n.Entry(t.Context(), c.entry.Action, c.entry.AccountID, "api")
			e.Actor, e.Address, e.Outcome = c.entry.Actor, c.entry.Address, c.entry.Outcome
			n.Report(t.Context(), e)
			var found []string

			for _, expression := range expressions {
				if match := expression.FindStringSubmatch(out.String()); match != nil {
					found = append(found, match[1])
				}
			}

			if c.banned && (len(found) != 1 || found[0] != e.Address) || !c.banned && len(found) > 0 {
				t.Errorf("%s: %s gives %q", name, out.String(), found)
			}
		}

		n.storing.Settle()
	}
}
