package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/audit"
	"trunkline/audit/audittest"
)

const auditPath = "/api/v2/audit"

// today is the query for a day around now.
func today() string {
	now := time.Now().Unix()
	return fmt.Sprintf("?startDate=%d&endDate=%d", now-12*3600, now+12*3600)
}

func TestAuditLogOverHTTP(t *testing.T) {
	e := newEnv(t)
	admin := e.as("admin", "demo")
	e.ask(200, "PUT", "/api/v2/config/call_recording_encryption", admin, `{"enabled":false}`, nil)
	e.ask(200, "GET", "/api/v2/config/call_recording_encryption", admin, "", nil)
	e.ask(200, "GET", cdrReportPath+today()+"&format=csv", e.as("alice", "demo"), "", nil)
	e.ask(201, "PUT", "/api/v2/recordings/call-1", e.recorderHeader(), "audio", nil)
	e.ask(401, "POST", "/ucp/v2/login", nil, `{"username":"alice","password":"wrong","domain":"demo.local"}`, nil)
	audittest.Await(t, e.audit, "demo", "login_failed", 1)

	day := today() // the same range for all pages, which is written once
	type entry struct{ Actor, Address, Action, Target, Outcome string }

	var page struct {
		Data         []entry
		NextStartKey string `json:"next_start_key"`
	}
	get := func(query string) []entry {
		page.Data, page.NextStartKey = nil, ""
		e.ask(200, "GET", auditPath+day+query, admin, "", &page)
		return page.Data
	}

	for action, want := range map[audit.Action]string{
		audit.EncryptionUpdate: "user: key_version:0 ok", audit.EncryptionRead: "user: key_version:0 ok",
		audit.CDRExport: "user: cdrs: ok", audit.RecordingStore: "apikey: recording:call-1 ok",
		audit.LoginFailed: "user: api wrong_password",
	} {
		found := get("&action=" + string(action))
		parts := strings.Fields(want)
		if len(found) != 1 || found[0].Action != string(action) || !strings.HasPrefix(found[0].Actor, parts[0]) ||
			len(found[0].Actor) <= len(parts[0]) ||
			!strings.HasPrefix(found[0].Target, parts[1]) || found[0].Outcome != parts[2] ||
			found[0].Address != "192.0.2.1" {
			t.Errorf("%s: %+v, want %s", action, found, want)
		}
	}

	all := get("&page_size=1000")
	var paged []entry
	for query := "&page_size=3"; ; query = "&page_size=3&start_key=" + page.NextStartKey {
		paged = append(paged, get(query)...)
		if page.NextStartKey == "" {
			break
		}
	}

	if len(all) < 8 || !slices.Equal(paged, all) {
		t.Errorf("%d entries on pages, %d on one", len(paged), len(all))
	}
	if found := get("&actor=" + all[0].Actor + "x"); len(found) != 0 {
		t.Errorf("another actor has %+v", found)
	}

	e.ask(403, "GET", auditPath+today(), e.as("alice", "demo"), "", nil)
	e.ask(401, "GET", auditPath+today(), nil, "", nil)
	e.ask(404, "GET", auditPath+today(), e.as("admin", "stranger"), "", nil)
	e.ask(200, "GET", auditPath+today(), e.as("admin", "sub"), "", &page)
	e.ask(200, "GET", auditPath+today(), header{"X-API-Key": e.key}, "", &page)

	for _, query := range []string{
		"", "?startDate=1", "?startDate=2&endDate=1", "?startDate=x&endDate=1", "?startDate=0&endDate=34560001",
		today() + "&action=nothing",
		today() + "&page_size=1001", today() + "&page_size=0", today() + "&start_key=x", today() + "&actor=",
		today() + "&actor=a&actor=b",
		"?startDate=-1&endDate=1",
	} {
		e.ask(400, "GET", auditPath+query, admin, "", nil)
	}
}
