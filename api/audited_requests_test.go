package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/audit"
	"trunkline/audit/audittest"
	"trunkline/internal/fault"
)

// Who reads call records, figures or the audit log is in it, once a minute for a range, and
// so is who is refused.
func TestReadsAndRefusalsAreAudited(t *testing.T) {
	e := newEnv(t)
	admin, alice := e.loginUser("admin"), e.loginUser("alice")
	const span = "startDate=1795000000&endDate=1795000900"

	for i := range 3 {
		e.ask(http.StatusOK, "GET", "/api/v2/reports/cdrs?"+span, bearer(alice.AccessToken), "", nil)
		if i == 0 { // each export is an entry
			e.ask(http.StatusOK, "GET", "/api/v2/reports/queues?format=csv&interval=900&"+span,
				bearer(alice.AccessToken), "", nil)
		}

		e.ask(http.StatusOK, "GET", "/api/v2/audit?"+span, bearer(admin.AccessToken), "", nil)
		e.ask(http.StatusForbidden, "GET", "/api/v2/audit?"+span, bearer(alice.AccessToken), "", nil)
		e.ask(http.StatusForbidden, "GET", accountsPath, header{"X-API-Key": e.key}, "", nil)

		// for another purpose
		e.ask(http.StatusForbidden, "GET", "/api/v2/reports/cdrs?"+span, bearer(e.eventsToken("alice")), "", nil)
		e.ask(http.StatusUnauthorized, "GET", accountsPath, bearer("x.y.z"), "", nil)
	}

	key, err := e.identity.Tokens.AuthenticateKey(t.Context(), e.key)
	must(t, err)
	for action, want := range map[audit.Action][]string{
		audit.CDRRead:       {"user:" + alice.User.ID + " cdrs:1795000000-1795000900 ok"},
		audit.FiguresExport: {"user:" + alice.User.ID + " queues:1795000000-1795000900 ok"},
		audit.AuditRead:     {"user:" + admin.User.ID + " audit:1795000000-1795000900 ok"},
		audit.RequestRefused: {
			"user:" + alice.User.ID + " GET:/api/v2/audit forbidden",
			"apikey:" + key.KeyID + " GET:" + accountsPath + " forbidden",
			"user:" + alice.User.ID + " GET:/api/v2/reports/cdrs forbidden",
		},
	} {
		found := audittest.Await(t, e.audit, "demo", string(action)+" ", len(want))
		for _, entry := range want {
			if !slices.Contains(found, string(action)+" "+entry) {
				t.Errorf("%s: %q is not in %q", action, entry, found)
			}
		}
	}
}

// Refusals without end, and reads of ever other ranges, write a bounded number of entries.
func TestRefusalsDoNotFillTheAuditLog(t *testing.T) {
	e := newEnv(t)
	alice := e.loginUser("alice")
	for i := range 3000 {
		r := header{"Authorization": "Bearer " + alice.AccessToken, "X-Request-ID": fmt.Sprint(i)}
		e.ask(http.StatusForbidden, "GET", "/api/v2/audit?startDate=1&endDate=2", r, "", nil)
	}

	for i := range 1000 {
		e.ask(http.StatusOK, "GET", fmt.Sprintf("/api/v2/reports/cdrs?startDate=%d&endDate=1795000900", 1795000000-i),
			bearer(alice.AccessToken), "", nil)
	}

	entries := 0
	for _, action := range []audit.Action{audit.RequestRefused, audit.CDRRead} {
		entries += len(audittest.Entries(t, e.audit, "demo", string(action)+" "))
	}

	if entries > 2*audit.DefaultSettings().UserEntriesPerMinute {
		t.Errorf("%d entries", entries)
	}
}

// spentAudit is an audit log whose actors have used up their entries.
type spentAudit struct{ AuditLog }

func (spentAudit) Act(context.Context, *audit.Entry, func() error) error {
	return fault.Limited(time.Minute, "Too many requests that are written to the audit log")
}

// Who has used up the entries of a minute does nothing more that would have one.
func TestNothingIsDoneWithoutItsEntry(t *testing.T) {
	e := newEnv(t, func(_ *Config, d *Deps) { d.Audit = spentAudit{d.Audit} })
	e.storeDeadLetters()
	admin := e.as("admin", "demo")

	for _, r := range [][3]string{
		{"DELETE", deadLettersPath + "/0:0", ""}, {"POST", deadLettersPath + "/0:1/retry", ""},
		{"POST", deadLettersPath + "/retry", "{}"},
		{"POST", "/api/v2/feeds/pbx/check", ""}, {"PUT", alertConfigPath, `{"alerts":[]}`},
		{"PUT", queueConfigPath, `{"default":{"service_level_seconds":10,"short_abandon_seconds":5},"queues":[]}`},
	} {
		e.ask(429, r[0], r[1], admin, r[2], nil)
	}

	if _, page := e.openLetters(admin, ""); page.Total != 4 {
		t.Errorf("%d letters are open", page.Total)
	}

	w := e.ask(200, "GET", queueConfigPath, admin, "", nil)
	if strings.Contains(w.Body.String(), `"service_level_seconds":10,`) {
		t.Errorf("the configuration was changed: %s", w.Body)
	}
}

func TestAnExportThatCannotBeAuditedIsRefused(t *testing.T) {
	e := newEnv(t)
	alice := e.as("alice", "demo")
	if _, err := e.db.ExecContext(t.Context(), `DROP TABLE audit_pending`); err != nil {
		t.Fatal(err)
	}
	e.ask(500, "GET", cdrReportPath+today()+"&format=csv", alice, "", nil)
	e.ask(200, "GET", cdrReportPath+today(), alice, "", nil)
}
