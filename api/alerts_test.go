package api

import (
	"fmt"
	"strings"
	"testing"

	"trunkline/audit/audittest"
	"trunkline/identity"
)

func TestAlertConfig(t *testing.T) {
	e := newEnv(t)
	admin := header{"Authorization": bearer(e.loginUser("admin").AccessToken)["Authorization"], "X-Account-ID": "demo"}

	var config struct {
		Alerts []struct {
			Name string
			When struct{ Metric string }
		}
		InheritedFrom string `json:"inherited_from"`
	}
	e.ask(200, "GET", alertConfigPath, admin, "", &config)

	if len(config.Alerts) != 4 || config.InheritedFrom != "default" {
		t.Errorf("%+v", config)
	}

	const body = `{"alerts":[{"name":"Many wait in sales","when":{"metric":"waiting","above":5,"for_seconds":10},"queues":["sales"]}]}`
	w := e.ask(200, "PUT", alertConfigPath,
		header{"Authorization": admin["Authorization"], "X-Account-ID": "demo", "If-Match": `"0"`}, body, nil)
	if strings.TrimSpace(w.Body.String()) != body || w.Header().Get("ETag") != `"1"` {
		t.Errorf("%s %s", w.Header(), w.Body)
	}

	e.ask(412, "PUT", alertConfigPath,
		header{"Authorization": admin["Authorization"], "X-Account-ID": "demo", "If-Match": `"0"`}, body, nil)
	w = e.ask(200, "GET", alertConfigPath, admin, "", nil)
	if strings.TrimSpace(w.Body.String()) != body {
		t.Errorf("stored %s", w.Body)
	}

	for body, field := range map[string]string{
		`{}`:             "alerts",
		`{"alerts":[1]}`: "alerts[0]",
		`{"alerts":[{"name":"x","when":{"metric":"waiting","above":"5"}}]}`:              "alerts[0].when.above",
		`{"alerts":[{"name":"x","when":{"metric":"waiting"}}]}`:                          "alerts[0].when.above",
		`{"alerts":[{"name":"x","when":{"metric":"waiting","above":1,"over":1}}]}`:       "alerts[0].when.over",
		`{"alerts":[{"name":"x","when":{"metric":"service_level","below":80}}]}`:         "alerts[0].when.below",
		`{"alerts":[{"name":"x","when":{"metric":"waiting","above":1e999}}]}`:            "alerts[0].when.above",
		`{"alerts":[{"name":"x","when":{"metric":"waiting","above":1},"agents":["a"]}]}`: "alerts[0].agents",
	} {
		w := e.ask(400, "PUT", alertConfigPath, admin, body, nil)
		if !strings.Contains(w.Body.String(), fmt.Sprintf("%q", field)) {
			t.Errorf("%s: %s", body, w.Body)
		}
	}

	e.ask(200, "PUT", alertConfigPath, admin, `{"alerts":[]}`, nil)
	e.ask(204, "DELETE", alertConfigPath, admin, "", nil)
	e.ask(200, "GET", alertConfigPath, admin, "", &config)

	if config.InheritedFrom != "default" {
		t.Errorf("%+v", config)
	}

	audittest.Await(t, e.audit, "demo", "alert_config.update", 3)
}

// putAlert stores an alert as the indexer does.
func (e *env) putAlert(account, id, queue, agent string, startedMS, endedMS int64) {
	e.t.Helper()
	alert := fmt.Sprintf(
		`{"alert_id":%q,"name":"n","metric":"waiting","above":5,"for_seconds":0,"queue_id":%q,"agent_id":%q,"value":6,"started_at":%d.5}`,
		id, queue, agent, startedMS/1000)
	alert = strings.NewReplacer(`"queue_id":"",`, "", `"agent_id":"",`, "").Replace(alert)
	_, err := e.db.ExecContext(e.t.Context(), `INSERT INTO figures_alerts VALUES ($1, $2, 1, $3, $4, $5, $6, $7)`,
		account, id, startedMS, endedMS, queue, agent, alert)
	must(e.t, err)
}

type alertPage struct {
	Data []struct {
		ID    string `json:"alert_id"`
		State string
	}
	Next string `json:"next_start_key"`
}

func (p alertPage) String() string {
	var ids []string
	for _, a := range p.Data {
		ids = append(ids, a.ID+":"+a.State)
	}
	return strings.Join(ids, " ")
}

func TestAlertsAreListedNewestFirstByRole(t *testing.T) {
	e := newEnv(t, func(_ *Config, d *Deps) { d.Roster = membersByQueue{"support": {"a7"}} })
	const day = int64(figuresDay)
	e.putAlert("demo", "alert_1", "sales", "", day*1000, (day+60)*1000)
	e.putAlert("demo", "alert_2", "support", "", (day+10)*1000, 0)
	e.putAlert("demo", "alert_3", "", "a1", (day+20)*1000, 0)
	e.putAlert("demo", "alert_4", "", "", (day+30)*1000, 0) // of a feed
	e.putAlert("sub", "alert_5", "sales", "", day*1000, 0)
	_, err := e.identity.Directory.CreateUser(t.Context(),
		identity.NewUser{Username: "sue", Account: "demo", Password: password, Role: identity.RoleSupervisor,
			Limits: identity.Limits{QueueIDs: []string{"support"}}})
	must(t, err)
	alice, sue := bearer(e.loginUser("alice").AccessToken), bearer(e.loginUser("sue").AccessToken)

	list := func(caller header, query string) (p alertPage) {
		t.Helper()
		e.ask(200, "GET", alertsPath+query, caller, "", &p)
		return p
	}

	span := fmt.Sprintf("startDate=%d&endDate=%d", day, day+100)
	for query, want := range map[string]string{
		"":                                  "alert_4:active alert_3:active alert_2:active",
		"?queue_id=support":                 "alert_2:active",
		"?agent_id=a1":                      "alert_3:active",
		"?state=ended&" + span:              "alert_1:ended",
		"?state=all&queue_id=sales&" + span: "alert_1:ended",
	} {
		if got := list(alice, query).String(); got != want {
			t.Errorf("%s: %s", query, got)
		}
	}

	if got := list(sue, "").String(); got != "alert_2:active" {
		t.Errorf("a supervisor sees %s", got)
	}

	first := list(alice, "?page_size=2")
	if second := list(alice,
		"?page_size=2&start_key="+first.Next); first.String()+" "+second.String() != "alert_4:active alert_3:active alert_2:active" ||
		second.Next != "" {
		t.Errorf("pages %s, %s", first, second)
	}

	e.ask(400, "GET", alertsPath+"?state=all", alice, "", nil)
	e.ask(400, "GET", alertsPath+"?"+span, alice, "", nil)
	e.ask(400, "GET", alertsPath+"?state=open", alice, "", nil)
}
