package api

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/identity"
)

// rolesByEndpoint has, for each endpoint, the roles that it does not refuse: A admin, S supervisor,
// G agent, D auditor, U user. A new endpoint needs a line.
var rolesByEndpoint = map[string]string{
	"POST /ucp/v2/logout":                                        "ASGDU",
	"PUT /ucp/v2/password":                                       "ASGDU",
	"GET /api/v2/config/login":                                   "AD",
	"PUT /api/v2/config/login":                                   "A",
	"GET /api/v2/accounts":                                       "AD",
	"POST /api/v2/accounts":                                      "A",
	"GET /api/v2/accounts/{id}":                                  "AD",
	"PUT /api/v2/accounts/{id}":                                  "A",
	"DELETE /api/v2/accounts/{id}":                               "A",
	"GET /api/v2/accounts/{id}/users":                            "AD",
	"POST /api/v2/accounts/{id}/users":                           "A",
	"GET /api/v2/accounts/{id}/users/{user}":                     "AD",
	"PUT /api/v2/accounts/{id}/users/{user}":                     "A",
	"DELETE /api/v2/accounts/{id}/users/{user}":                  "A",
	"POST /api/v2/accounts/{id}/users/{user}/otp":                "A",
	"DELETE /api/v2/accounts/{id}/users/{user}/otp":              "A",
	"GET /api/v2/accounts/{id}/users/{user}/devices":             "AD",
	"POST /api/v2/accounts/{id}/users/{user}/devices":            "A",
	"DELETE /api/v2/accounts/{id}/users/{user}/devices/{device}": "A",
	"GET /api/v2/apikeys":                                        "AD",
	"POST /api/v2/apikeys":                                       "A",
	"GET /api/v2/apikeys/{id}":                                   "AD",
	"PUT /api/v2/apikeys/{id}":                                   "A",
	"DELETE /api/v2/apikeys/{id}":                                "A",
	"GET /api/v2/cc_events_channel/stats":                        "ASGU",
	"GET /ws/v1/cc_events/stats":                                 "ASGU",
	"POST /api/v2/cc_events_channel/login":                       "ASGU",
	"POST /ws/v1/cc_events/login":                                "ASGU",
	"GET /api/v2/config/call_recording_encryption":               "AD",
	"PUT /api/v2/config/call_recording_encryption":               "A",
	"GET /api/v2/config/call_recording":                          "AD",
	"PUT /api/v2/config/call_recording":                          "A",
	"POST /api/v2/calls/{origination_call_id}/recording":         "A",
	"POST /api/v2/calls/{origination_call_id}/listeners":         "A",
	"PUT /api/v2/recordings/{recording_id}/hold":                 "A",
	"DELETE /api/v2/recordings/{recording_id}/hold":              "A",
	"GET /api/v2/config/alerts":                                  "AD",
	"PUT /api/v2/config/alerts":                                  "A",
	"DELETE /api/v2/config/alerts":                               "A",
	"GET /api/v2/alerts":                                         "ASGU",
	"GET /api/v2/feeds":                                          "AD",
	"POST /api/v2/feeds/{name}/check":                            "A",
	"GET /api/v2/dead_letters":                                   "A",
	"POST /api/v2/dead_letters/retry":                            "A",
	"GET /api/v2/dead_letters/{position}":                        "A",
	"DELETE /api/v2/dead_letters/{position}":                     "A",
	"POST /api/v2/dead_letters/{position}/retry":                 "A",
	"GET /api/v2/reports/abandoned":                              "ASGU",
	"GET /api/v2/config/queues":                                  "AD",
	"PUT /api/v2/config/queues":                                  "A",
	"GET /api/v2/recordings":                                     "ASGD",
	"PUT /api/v2/recordings/{recording_id}":                      "A",
	"GET /api/v2/recordings/{recording_id}":                      "ASG",
	"DELETE /api/v2/recordings/{recording_id}":                   "A",
	"GET /api/v2/recordings/{recording_id}/metadata":             "ASGD",
	"GET /api/v2/reports/cdrs":                                   "ASGU",
	"GET /api/v2/reports/queues":                                 "ASGU",
	"GET /api/v2/reports/agents":                                 "ASGU",
	"GET /api/v2/audit":                                          "AD",
	"GET /api/v2/webhooks":                                       "AD",
	"POST /api/v2/webhooks":                                      "A",
	"GET /api/v2/webhooks/{id}":                                  "AD",
	"PUT /api/v2/webhooks/{id}":                                  "A",
	"DELETE /api/v2/webhooks/{id}":                               "A",
	"POST /api/v2/webhooks/{id}/retry":                           "A",
	"POST /api/v2/webhooks/{id}/test":                            "A",
	"GET /api/v2/events/{id}/explain":                            "AD",
	"POST /ucp/v2/c2c/":                                          "ASGU",
	"POST /ucp/v2/c2c/{destination}":                             "ASGU",
	"GET /api/v2/calls/{origination_call_id}":                    "ASGU",
	"DELETE /api/v2/calls/{origination_call_id}":                 "ASGU",
	"GET /api/v2/config/ai_providers":                            "AD",
	"POST /api/v2/config/ai_providers":                           "A",
	"GET /api/v2/config/ai_providers/{id}":                       "AD",
	"PUT /api/v2/config/ai_providers/{id}":                       "A",
	"DELETE /api/v2/config/ai_providers/{id}":                    "A",
	"POST /api/v2/config/ai_providers/{id}/test":                 "A",
	"POST /api/v2/ai_sessions":                                   "AU",
	"GET /media/v1/{provider_id}":                                "A",
	"POST /api/v2/agents/{agent_id}/actions":                     "ASGU", // which action on what: package control
	"POST /api/v2/calls/{origination_call_id}/actions":           "ASGU",
	"GET /api/v2/actions/{action_id}":                            "ASGU",
}

// endpointsWithoutToken are the endpoints without a token of the API: they need none, have the password in the
// body, take keys alone, or authenticate a subscriber themselves.
var endpointsWithoutToken = []string{
	"GET /openapi.yaml", "GET /asyncapi.yaml", "GET /openapi.json", "GET /asyncapi.json", "GET /schemas/{name}",
	"POST /2010-04-01/Accounts/{account_sid}/Calls/{call_sid}", // has the provider's secret
	"GET /", "GET /board/{file}", "GET /docs", "GET /docs/{page}", "GET /docs/{folder}/{page}",
	"GET /.well-known/jwks.json",
	"POST /ucp/v2/login", "POST /ucp/v2/login/refresh", "POST /ucp/v2/otp", "PUT /ucp/v2/otp",
	"GET /auth/oidc", "GET /auth/oidc/start", "GET /auth/oidc/callback", "POST /auth/oidc/session",
	"POST /api/v2/ingest/{format}",
	"GET /api/v2/cc_events_channel/ws", "GET /api/v2/cc_events_channel/stream", "GET /api/v2/cc_events_channel/health",
	"GET /api/v2/cc_events_channel/snapshot",
	"POST /api/v2/cc_events_channel/logout", "POST /ws/v1/cc_events/logout", "GET /ws/v1/cc_events",
	"GET /ws/v1/cc_events/stream", "GET /ws/v1/cc_events/health", "GET /ws/v1/cc_events/snapshot",
}

var roleLetters = map[identity.Role]string{
	identity.RoleAdmin: "A", identity.RoleSupervisor: "S", identity.RoleAgent: "G", identity.RoleAuditor: "D",
	identity.RoleUser: "U",
}

// Every endpoint, for every role, on the own account, one below it and a sibling: a role that
// is not named gets 403, an account that is not seen is not told apart from one that does not
// exist.
func TestEveryEndpointAdmitsTheRolesOfTheTable(t *testing.T) {
	e := newEnv(t)
	tokens := make(map[identity.Role]header)
	for role := range roleLetters {
		tokens[role] = e.userWith("the-"+string(role), "demo", role, "", identity.Limits{})
	}

	for _, r := range e.api.routes() {
		name := r.method + " " + parameter.ReplaceAllString(r.path, "{$1}")
		if slices.Contains(endpointsWithoutToken, name) {
			continue
		}

		admitted, known := rolesByEndpoint[name]
		if !known {
			t.Errorf("%s has no line in the table of rights", name)
			continue
		}
		if name == "POST /ucp/v2/logout" { // it would end the sessions of this test
			continue
		}

		for role, letter := range roleLetters {
			for _, account := range []string{"demo", "sub", "stranger"} {
				h := header{"X-Account-ID": account, "Authorization": tokens[role]["Authorization"]}
				path := parameter.ReplaceAllString(r.path, "x")
				if strings.HasPrefix(r.path, "/api/v2/accounts/") {
					path = strings.Replace(path, "/accounts/x", "/accounts/"+account, 1)
				}
				if r.method == http.MethodDelete && path == "/api/v2/accounts/sub" {
					continue
				}

				body := ""
				if r.method == http.MethodPost || r.method == http.MethodPut {
					body = "{}"
				}

				w := e.do(r.method, path, h, body)
				if allowed := w.Code != http.StatusForbidden; allowed != strings.Contains(admitted, letter) &&
					w.Code != http.StatusNotFound && w.Code != http.StatusBadRequest {
					t.Errorf("%s of %s as %s: %d %s, the table says %q", name, account, role, w.Code, w.Body, admitted)
				}
				if strings.Contains(admitted, letter) && w.Code == http.StatusForbidden {
					t.Errorf("%s of %s as %s: %s, the table says %q", name, account, role, w.Body, admitted)
				}
				if account == "stranger" && w.Code < 300 && w.Body.Len() > 0 &&
					strings.Contains(w.Body.String(), `"stranger"`) {
					t.Errorf("%s as %s shows another tenant's account: %s", name, role, w.Body)
				}
			}
		}
	}
}

// Roles and their queues or agents are fields of users and API keys: a PUT with the same role and without the lists
// keeps them, another role ends them, and lists that a role does not have are refused by their names.
func TestRolesAndTheirListsOverHTTP(t *testing.T) {
	e := newEnv(t)
	admin := bearer(e.loginUser("admin").AccessToken)
	for path, fields := range map[string]string{accountsPath + "/demo/users": `"username":"anna"`,
		keysPath: `"name":"wall","scopes":["read"]`} {
		kept := strings.TrimPrefix(fields, `"username":"anna"`)
		if kept != "" {
			kept += ","
		}

		type made struct {
			ID       string
			Role     identity.Role
			QueueIDs []string `json:"queue_ids"`
			AgentIDs []string `json:"agent_ids"`
		}
		var first made
		e.ask(201, "POST", path, admin, "{"+fields+`,"role":"supervisor","queue_ids":["sales","support","sales"]}`,
			&first)

		for _, step := range []struct {
			body string
			want made
		}{
			{`"role":"supervisor"`, made{Role: identity.RoleSupervisor, QueueIDs: []string{"sales", "support"}}},
			{`"role":"supervisor","queue_ids":["sales"]`,
				made{Role: identity.RoleSupervisor, QueueIDs: []string{"sales"}}},
			{`"role":"agent","agent_ids":["1001@x"]`, made{Role: identity.RoleAgent, AgentIDs: []string{"1001@x"}}},
			{`"role":"agent"`, made{Role: identity.RoleAgent, AgentIDs: []string{"1001@x"}}},
			{`"role":"agent","agent_ids":["1003@x"]`, made{Role: identity.RoleAgent, AgentIDs: []string{"1003@x"}}},
			{`"role":"auditor"`, made{Role: identity.RoleAuditor}},
			{`"role":"supervisor"`, made{Role: identity.RoleSupervisor}},
		} {
			var changed, found made
			e.ask(200, "PUT", path+"/"+first.ID, admin, "{"+kept+step.body+"}", &changed)
			e.ask(200, "GET", path+"/"+first.ID, admin, "", &found)
			step.want.ID = first.ID

			if !reflect.DeepEqual(changed, step.want) || !reflect.DeepEqual(found, step.want) {
				t.Errorf("%s with %s: %+v, found %+v, want %+v", path, step.body, changed, found, step.want)
			}
		}

		for body, field := range map[string]string{
			`"role":"agent","queue_ids":["sales"]`: "queue_ids", `"role":"user","agent_ids":["1001@x"]`: "agent_ids",
			`"role":"supervisor","queue_ids":[""]`: "queue_ids", `"role":"boss"`: "role",
		} {
			w := e.ask(400, "PUT", path+"/"+first.ID, admin, "{"+kept+body+"}", nil)
			if !strings.Contains(w.Body.String(), `"field":"`+field) {
				t.Errorf("%s with %s: %s", path, body, w.Body)
			}
		}
	}
}

// What a role sees of call records is what an administrator sees, filtered.
func TestCallRecordsOfARoleAreTheAdministratorsFiltered(t *testing.T) {
	members := membersByQueue{"sales@x": {"1003@x", "1004@x"}, "support@x": {"1001@x"}}
	e := newEnv(t, func(_ *Config, d *Deps) { d.Roster = members })
	start := cdrOfLeg("demo", "x", 1).Timestamp

	for i, row := range []event.CDR{
		{QueueID: "sales@x", AgentID: "1003@x"}, {QueueID: "support@x", AgentID: "1001@x"},
		{QueueID: "support@x", AgentID: "1003@x"},
		{QueueID: "sales@x"}, {AgentID: "1004@x"}, {}, {AgentID: "PJSIP/1001"}, {AgentID: "Local/1001@agents/n"},
		{AgentID: "x1001@x"}, {AgentID: "1001_@x"},
	} {
		kind := row
		row = cdrOfLeg("demo", fmt.Sprint("call", i), 1)
		row.QueueID, row.AgentID = kind.QueueID, kind.AgentID
		e.cdr.put(row)
	}

	type page struct{ Data []event.CDR }
	read := func(h header) (rows []event.CDR) {
		var p page
		e.ask(200, "GET",
			fmt.Sprintf("/api/v2/reports/cdrs?startDate=%d&endDate=%d&page_size=1000", start-10, start+1000), h, "", &p)
		return p.Data
	}

	admin := bearer(e.loginUser("admin").AccessToken)
	deadline := time.Now().Add(patience)
	for len(read(admin)) < 10 && time.Now().Before(deadline) {
		time.Sleep(20 * time.Millisecond)
	}

	all := read(admin)
	if len(all) != 10 {
		t.Fatalf("the administrator sees %d rows", len(all))
	}

	for name, c := range map[string]struct {
		role      identity.Role
		extension string
		limits    identity.Limits
		sees      func(event.CDR) bool
	}{
		"a supervisor of a queue": {identity.RoleSupervisor, "", identity.Limits{QueueIDs: []string{"sales@x"}},
			func(r event.CDR) bool {
				return r.QueueID == "sales@x" || slices.Contains(members["sales@x"], r.AgentID)
			}},
		"a supervisor of all": {identity.RoleSupervisor, "", identity.Limits{},
			func(r event.CDR) bool { return r.QueueID != "" || r.AgentID != "" }},
		"an agent by its id": {identity.RoleAgent, "", identity.Limits{AgentIDs: []string{"1003@x"}},
			func(r event.CDR) bool { return r.AgentID == "1003@x" }},
		"an agent by its extension": {identity.RoleAgent, "71001", identity.Limits{},
			func(event.CDR) bool { return false }},
		"a user": {identity.RoleUser, "", identity.Limits{}, func(event.CDR) bool { return true }},
	} {
		h := e.userWith(strings.ReplaceAll(name, " ", "-"), "demo", c.role, c.extension, c.limits)
		want := slices.DeleteFunc(slices.Clone(all), func(r event.CDR) bool { return !c.sees(r) })
		got := read(h)
		if len(got) != len(want) {
			t.Errorf("%s sees %d rows, want %d: %+v", name, len(got), len(want), got)
		}

		for i := range min(len(got), len(want)) {
			if got[i].CallID != want[i].CallID {
				t.Errorf("%s sees %s, want %s", name, got[i].CallID, want[i].CallID)
			}
		}

		csv := e.do("GET", fmt.Sprintf("/api/v2/reports/cdrs?startDate=%d&endDate=%d&format=csv", start-10, start+1000),
			h, "").Body.String()
		if lines := strings.Count(csv, "\n") - 1; lines != len(want) {
			t.Errorf("%s sees %d lines of CSV, want %d", name, lines, len(want))
		}
	}
}

// What a role sees of call records, recordings and figures is what an administrator sees, filtered: random rows and
// random queues or agents of roles, of users and of API keys.
func TestReportsOfARandomRoleAreTheAdministratorsFiltered(t *testing.T) {
	random := rand.New(rand.NewPCG(39, 1))
	queues, agents := []string{"q1", "q2", "q3", ""}, []string{"1001@x", "PJSIP/1002", "1003", "Local/1004@a/n", ""}
	members := membersByQueue{}

	for _, queue := range queues[:3] {
		for _, agent := range agents[:4] {
			if random.IntN(2) == 0 {
				members[queue] = append(members[queue], agent)
			}
		}
	}

	e := newEnv(t, func(_ *Config, d *Deps) { d.Roster = members })
	type thing struct{ id, queue, agent string }
	var things []thing
	start := cdrOfLeg("demo", "x", 1).Timestamp

	for i := range 25 {
		made := thing{fmt.Sprintf("thing-%02d", i), queues[random.IntN(4)], agents[random.IntN(5)]}
		things = append(things, made)
		row := cdrOfLeg("demo", made.id, 1)
		row.QueueID, row.AgentID = made.queue, made.agent
		e.cdr.put(row)

		known := url.Values{"queue_id": {made.queue}, "agent_id": {made.agent}}
		for name := range known {
			if known.Get(name) == "" {
				known.Del(name)
			}
		}

		e.ask(201, "PUT", recordingsPath+"/"+made.id+"?"+known.Encode(), e.recorderHeader(), "audio", nil)
	}

	for _, id := range slices.Concat(queues[:3], agents[:4]) { // each as a queue and as an agent
		e.putFigures("demo", id, figuresDay, 1)
	}

	shown := map[string]func(h header) string{
		"call records": func(h header) string {
			var p struct{ Data []event.CDR }
			e.ask(200, "GET",
				fmt.Sprintf("/api/v2/reports/cdrs?startDate=%d&endDate=%d&page_size=1000", start-10, start+1000), h, "",
				&p)
			ids := make([]string, len(p.Data))

			for i, row := range p.Data {
				ids[i] = row.CallID
			}

			return sortedWords(ids)
		},
		"recordings": func(h header) string {
			return sortedWords(strings.Fields(e.recordingIDs(withHeader(h, "X-Account-ID", "demo"), "")))
		},
	}

	for _, kind := range []string{"queues", "agents"} {
		shown[kind] = func(h header) string {
			var p figuresPage
			e.ask(200, "GET", figuresReport(kind, ""), h, "", &p)
			var ids []string

			for _, row := range p.Data {
				ids = append(ids, row.QueueID+row.AgentID)
			}

			return sortedWords(ids)
		}
	}

	admin := bearer(e.loginUser("admin").AccessToken)
	waitFor(t, func() bool { return len(strings.Fields(shown["call records"](admin))) == len(things) })

	for i := range 12 {
		role, limits := identity.RoleSupervisor, identity.Limits{}
		if i%2 == 1 {
			role = identity.RoleAgent
		}

		for range 1 + random.IntN(2) {
			if role == identity.RoleAgent {
				limits.AgentIDs = append(limits.AgentIDs, agents[random.IntN(4)])
			} else {
				limits.QueueIDs = append(limits.QueueIDs, queues[random.IntN(3)])
			}
		}

		sees := func(queue, agent string) bool {
			isMember := func(q string) bool { return agent != "" && slices.Contains(members[q], agent) }
			return queue != "" && slices.Contains(limits.QueueIDs, queue) ||
				slices.ContainsFunc(limits.QueueIDs, isMember) ||
				agent != "" && slices.Contains(limits.AgentIDs, agent)
		}

		want := map[string][]string{"queues": {}, "agents": {}}
		for _, made := range things {
			if sees(made.queue, made.agent) {
				want["call records"] = append(want["call records"], made.id)
			}
		}

		want["recordings"] = want["call records"]
		for _, id := range slices.Concat(queues[:3], agents[:4]) {
			if sees(id, "") {
				want["queues"] = append(want["queues"], id)
			}
			if sees("", id) {
				want["agents"] = append(want["agents"], id)
			}
		}

		secret, _, err := e.identity.Directory.CreateAPIKey(t.Context(), identity.NewAPIKey{Account: "demo", Role: role,
			Limits: limits, Scopes: []identity.Scope{identity.ScopeRead, identity.ScopeRecordings}})
		must(t, err)

		for who, h := range map[string]header{
			"user": e.userWith(fmt.Sprint("user-", i), "demo", role, "", limits), "key": {"X-API-Key": secret}} {
			for kind, show := range shown {
				if got, want := show(h), sortedWords(want[kind]); got != want {
					t.Errorf("a %s with the role %s %v sees the %s %q, want %q", who, role, limits, kind, got, want)
				}
			}
		}
	}
}

func sortedWords(words []string) string {
	return strings.Join(slices.Sorted(slices.Values(words)), " ")
}
