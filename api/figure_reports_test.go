package api

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"trunkline/identity"
	"trunkline/stats/figures"
)

// addFigures adds the real reports over the test's database.
func (e *env) addFigures(deps *Deps, log *slog.Logger) {
	e.t.Helper()
	store, err := figures.New(e.t.Context(), 0, e.db, e.metricRegistry, log)
	must(e.t, err)
	deps.Figures, deps.Alerts, deps.Abandoned, deps.Feeds = store, store, store, fakeFeeds{}
}

const figuresDay = 1_795_132_800 // 2026-11-20 00:00 UTC

// putFigures stores a row of a queue and one of an agent with the same id.
func (e *env) putFigures(account, id string, start, offered int64) {
	e.t.Helper()
	_, err := e.db.ExecContext(e.t.Context(),
		`INSERT INTO figures_queues VALUES ($1, $2, $3, 900, 0, 1, $4, 1, 1, 0, 1, 0, 20, 5, 1000, 1000, 0, 0, 0, 0)`,
		account, id, start, offered)
	must(e.t, err)
	_, err = e.db.ExecContext(e.t.Context(),
		`INSERT INTO figures_agents VALUES ($1, $2, $3, 900, 0, 1, 900000, 300000, 0, 0, 600000, 0, 0, 0, '{"lunch":600000}')`,
		account, id, start)
	must(e.t, err)
}

type figuresPage struct {
	Data []struct {
		AccountID string           `json:"account_id"`
		QueueID   string           `json:"queue_id"`
		AgentID   string           `json:"agent_id"`
		Start     int64            `json:"interval_start"`
		Seconds   int64            `json:"interval_seconds"`
		Offered   int64            `json:"offered"`
		Level     *float64         `json:"service_level"`
		LoggedIn  int64            `json:"logged_in_ms"`
		Reasons   map[string]int64 `json:"break_ms_by_reason"`
	} `json:"data"`
	PageSize     int    `json:"page_size"`
	NextStartKey string `json:"next_start_key"`
}

func figuresReport(kind, query string) string {
	return fmt.Sprintf("/api/v2/reports/%s?startDate=%d&endDate=%d%s", kind, figuresDay, figuresDay+86399, query)
}

func TestFigureReports(t *testing.T) {
	e := newEnv(t)
	e.putFigures("demo", "sales", figuresDay, 2)
	e.putFigures("demo", "support", figuresDay, 4)
	e.putFigures("demo", "support", figuresDay+900, 4)
	e.putFigures("demo", "=1+1", figuresDay+7200, 4)
	e.putFigures("demo", "support", figuresDay+86400, 4)
	e.putFigures("sub", "s-queue", figuresDay, 1)
	e.putFigures("stranger", "x-queue", figuresDay, 1)
	alice := bearer(e.loginUser("alice").AccessToken)

	var page figuresPage
	e.ask(200, "GET", figuresReport("queues", "&interval=3600"), alice, "", &page)
	if len(page.Data) != 3 || page.Data[0].QueueID != "=1+1" || page.Data[1].QueueID != "sales" ||
		page.PageSize != 50 || page.NextStartKey != "" ||
		page.Data[2].QueueID != "support" || page.Data[2].Offered != 8 || page.Data[2].Seconds != 3600 ||
		*page.Data[2].Level != 0.25 {
		t.Errorf("%+v", page)
	}

	page = figuresPage{}
	e.ask(200, "GET", figuresReport("agents", "&interval=86400&agent_id=support"), alice, "", &page)
	if len(page.Data) != 1 || page.Data[0].AgentID != "support" || page.Data[0].LoggedIn != 1_800_000 ||
		page.Data[0].Reasons["lunch"] != 1_200_000 {
		t.Errorf("%+v", page)
	}

	for query, want := range map[string]string{"&by=queue": "=1+1:4 sales:2 support:8", "&by=interval": ":4 :4 :6",
		"&by=queue&queue_id=sales": "sales:2"} {
		page = figuresPage{}
		e.ask(200, "GET", figuresReport("queues", query), alice, "", &page)
		var got []string

		for _, row := range page.Data {
			got = append(got, fmt.Sprint(row.QueueID, ":", row.Offered))
		}

		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %s", query, got, want)
		}
	}

	first, second := figuresPage{}, figuresPage{}
	e.ask(200, "GET", figuresReport("queues", "&page_size=3"), alice, "", &first)
	e.ask(200, "GET", figuresReport("queues", "&page_size=3&start_key="+first.NextStartKey), alice, "", &second)

	if len(first.Data) != 3 || len(second.Data) != 1 || second.Data[0].QueueID != "support" ||
		second.Data[0].Start != figuresDay || second.NextStartKey != "" {
		t.Errorf("pages %+v, %+v", first, second)
	}

	for _, w := range []string{
		e.ask(200, "GET", figuresReport("queues", "&format=csv"), alice, "", nil).Body.String(),
		e.ask(200, "GET", figuresReport("queues", ""), header{"X-API-Key": e.key, "Accept": "text/csv"}, "",
			nil).Body.String(),
	} {
		rows, err := csv.NewReader(strings.NewReader(w)).ReadAll()
		if err != nil || len(rows) != 5 || rows[0][1] != "queue_id" || rows[1][1] != "'=1+1" {
			t.Errorf("csv %v %v", rows, err)
		}
	}
}

func TestFigureReportsOfAnotherAccount(t *testing.T) {
	e := newEnv(t)
	e.putFigures("demo", "q", figuresDay, 1)
	e.putFigures("sub", "q", figuresDay, 3)
	alice := bearer(e.loginUser("alice").AccessToken)

	for _, kind := range []string{"queues", "agents"} {
		aliceIn := func(account string) header {
			return header{"Authorization": alice["Authorization"], "X-Account-ID": account}
		}
		var page figuresPage
		e.ask(200, "GET", figuresReport(kind, ""), aliceIn("sub"), "", &page)

		if len(page.Data) != 1 || page.Data[0].AccountID != "sub" {
			t.Errorf("%s of sub: %+v", kind, page.Data)
		}

		e.ask(404, "GET", figuresReport(kind, ""), aliceIn("stranger"), "", nil)
		e.ask(404, "GET", figuresReport(kind, ""), aliceIn("nobody"), "", nil)
		e.ask(401, "GET", figuresReport(kind, ""), nil, "", nil)
		e.ask(403, "GET", figuresReport(kind, ""), bearer(e.eventsToken("alice")), "", nil)
	}
}

// What a role sees of figures is what an administrator sees, filtered, as JSON and as CSV.
func TestFiguresOfARoleAreTheAdministratorsFiltered(t *testing.T) {
	e := newEnv(t, func(_ *Config, d *Deps) { d.Roster = membersByQueue{"sales": {"1001"}} })
	for _, id := range []string{"1001", "1002", "sales", "support"} { // each as a queue and as an agent
		e.putFigures("demo", id, figuresDay, 1)
	}

	everything := []string{"1001", "1002", "sales", "support"}
	for name, c := range map[string]struct {
		role           identity.Role
		limits         identity.Limits
		queues, agents []string
	}{
		"administrator": {identity.RoleAdmin, identity.Limits{}, everything, everything},
		"user":          {identity.RoleUser, identity.Limits{}, everything, everything},
		"head":          {identity.RoleSupervisor, identity.Limits{}, everything, everything},
		"supervisor": {identity.RoleSupervisor, identity.Limits{QueueIDs: []string{"sales"}}, []string{"sales"},
			[]string{"1001"}},
		"of-another":      {identity.RoleSupervisor, identity.Limits{QueueIDs: []string{"elsewhere"}}, nil, nil},
		"agent":           {identity.RoleAgent, identity.Limits{AgentIDs: []string{"1002"}}, nil, []string{"1002"}},
		"without-figures": {identity.RoleAgent, identity.Limits{AgentIDs: []string{"1009"}}, nil, nil},
	} {
		h := e.userWith(name, "demo", c.role, "", c.limits)
		for kind, want := range map[string][]string{"queues": c.queues, "agents": c.agents} {
			for _, by := range []string{"", "&by=" + strings.TrimSuffix(kind, "s")} {
				var page figuresPage
				e.ask(200, "GET", figuresReport(kind, by), h, "", &page)
				var got []string

				for _, row := range page.Data {
					got = append(got, row.QueueID+row.AgentID)
				}

				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Errorf("%s sees the %s%s %q, want %q", name, kind, by, got, want)
				}
			}

			var sum figuresPage
			e.ask(200, "GET", figuresReport(kind, "&by=interval"), h, "", &sum)
			if len(sum.Data) != min(1, len(want)) ||
				kind == "queues" && len(want) > 0 && sum.Data[0].Offered != int64(len(want)) {
				t.Errorf("%s sees sums of the %s %+v, of %q", name, kind, sum.Data, want)
			}

			csv := e.do("GET", figuresReport(kind, "&format=csv"), h, "").Body.String()
			if lines := strings.Count(csv, "\n") - 1; lines != len(want) {
				t.Errorf("%s sees %d lines of CSV of the %s, want %d:\n%s", name, lines, kind, len(want), csv)
			}
		}
	}

	auditor := e.userWith("auditor", "demo", identity.RoleAuditor, "", identity.Limits{})
	e.ask(403, "GET", figuresReport("queues", ""), auditor, "", nil)
}

func TestFiguresOfADayOfTheAccountsTimeZone(t *testing.T) {
	e := newEnv(t)
	_, err := e.identity.Directory.CreateAccount(t.Context(),
		identity.NewAccount{ID: "tokyo", Name: "tokyo", Domain: "tokyo.local", Parent: "demo", TimeZone: "Asia/Tokyo"})
	must(t, err)

	for _, start := range []int64{figuresDay + 14*3600, figuresDay + 15*3600} { // 23:00, and midnight in Tokyo
		e.putFigures("tokyo", "q", start, 1)
		e.putFigures("demo", "q", start, 1)
	}

	alice := bearer(e.loginUser("alice").AccessToken)
	var utc, tokyo figuresPage
	e.ask(200, "GET", figuresReport("queues", "&interval=86400"), alice, "", &utc)

	waitFor(t, func() bool { // the directory follows
		w := e.do("GET", figuresReport("queues", "&interval=86400"),
			header{"Authorization": alice["Authorization"], "X-Account-ID": "tokyo"}, "")
		return w.Code == 200 && json.Unmarshal(w.Body.Bytes(), &tokyo) == nil
	})

	if len(utc.Data) != 1 || utc.Data[0].Offered != 2 || len(tokyo.Data) != 2 ||
		tokyo.Data[0].Start != figuresDay+15*3600 || tokyo.Data[1].Start != figuresDay-9*3600 {
		t.Errorf("UTC %+v\nTokyo %+v", utc.Data, tokyo.Data)
	}
}

func TestFigureReportRefusals(t *testing.T) {
	e := newEnv(t)
	alice := bearer(e.loginUser("alice").AccessToken)
	for query, field := range map[string]string{
		"": "startDate", "?startDate=1": "endDate", "?startDate=5&endDate=2": "endDate",
		"?startDate=0&endDate=34560001":      "endDate",
		"?startDate=1&endDate=2&page_size=0": "page_size", "?startDate=1&endDate=2&start_key=zzz": "start_key",
		"?startDate=1&endDate=2&interval=60": "interval", "?startDate=1&endDate=2&by=day": "by",
	} {
		for _, kind := range []string{"queues", "agents"} {
			w := e.ask(400, "GET", "/api/v2/reports/"+kind+query, alice, "", nil)
			if !strings.Contains(w.Body.String(), `"field":"`+field+`"`) {
				t.Errorf("%s%s: %s", kind, query, w.Body)
			}
		}
	}
}
