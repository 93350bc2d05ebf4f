package api

import (
	"strings"
	"testing"

	"trunkline/audit/audittest"
)

func TestQueueConfig(t *testing.T) {
	e := newEnv(t, func(_ *Config, deps *Deps) { deps.QueueConfigs = nil })
	if w := e.do("GET", "/api/v2/config/queues", nil, ""); w.Code != 404 {
		t.Errorf("without configurations: %d", w.Code)
	}

	e = newEnv(t)
	admin := e.as("admin", "demo")
	const body = `{"default":{"service_level_seconds":30,"short_abandon_seconds":4},"queues":[{"queue_id":"sales","service_level_seconds":60,"short_abandon_seconds":10}]}`
	w := e.ask(200, "GET", queueConfigPath, admin, "", nil)
	if text := strings.TrimSpace(
		w.Body.String()); text != `{"default":{"service_level_seconds":20,"short_abandon_seconds":5},"queues":[]}` ||
		w.Header().Get("ETag") != `"0"` {
		t.Errorf("%s %s", text, w.Header())
	}

	w = e.ask(200, "PUT", queueConfigPath,
		header{"Authorization": admin["Authorization"], "X-Account-ID": "demo", "If-Match": `"0"`}, body, nil)
	if w.Header().Get("ETag") != `"1"` || strings.TrimSpace(w.Body.String()) != body {
		t.Errorf("%s %s", w.Body, w.Header())
	}

	e.ask(412, "PUT", queueConfigPath,
		header{"Authorization": admin["Authorization"], "X-Account-ID": "demo", "If-Match": `"0"`}, body, nil)
	w = e.ask(200, "GET", queueConfigPath, admin, "", nil)
	if strings.TrimSpace(w.Body.String()) != body || e.etag(queueConfigPath, admin) != `"1"` {
		t.Errorf("%s", w.Body)
	}

	w = e.ask(200, "GET", queueConfigPath, e.as("admin", "sub"), "", nil)
	if w.Header().Get("ETag") != `"0"` {
		t.Errorf("sub has the configuration of demo: %s", w.Body)
	}

	e.ask(403, "GET", queueConfigPath, e.as("alice", "demo"), "", nil)
	e.ask(403, "PUT", queueConfigPath, e.as("alice", "demo"), body, nil)
	e.ask(404, "GET", queueConfigPath, e.as("admin", "stranger"), "", nil)
	e.ask(401, "GET", queueConfigPath, header{"X-Account-ID": "demo"}, "", nil)

	for body, field := range map[string]string{
		`{}`: "default", `{"default":{"service_level_seconds":20,"short_abandon_seconds":5}}`: "queues",
		`{"default":{"service_level_seconds":"x","short_abandon_seconds":5},"queues":[]}`:                                                                  "default.service_level_seconds",
		`{"default":{"service_level_seconds":-1,"short_abandon_seconds":5},"queues":[]}`:                                                                   "default.service_level_seconds",
		`{"default":{"service_level_seconds":1,"short_abandon_seconds":5,"x":1},"queues":[]}`:                                                              "default.x",
		`{"default":{"service_level_seconds":1,"short_abandon_seconds":5},"queues":[7]}`:                                                                   "queues[0]",
		`{"default":{"service_level_seconds":1,"short_abandon_seconds":5},"queues":[{"queue_id":"","service_level_seconds":1,"short_abandon_seconds":5}]}`: "queues[0].queue_id",
	} {
		w := e.ask(400, "PUT", queueConfigPath, admin, body, nil)
		if !strings.Contains(w.Body.String(), `"field":"`+field+`"`) {
			t.Errorf("%s: %s", body, w.Body)
		}
	}

	audittest.Await(t, e.audit, "demo", "queue_config.update", 1)
	var log struct{ Data []struct{ Target string } }
	e.ask(200, "GET", auditPath+today()+"&action=queue_config.update", admin, "", &log)

	if len(log.Data) != 1 || log.Data[0].Target != "queue_config:demo" {
		t.Errorf("audit log: %+v", log.Data)
	}
}
