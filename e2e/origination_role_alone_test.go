package e2e

import (
	"net/http"
	"strings"
	"testing"
)

// A node with the role origination alone, to which the chart's ingress leads all of /api/v2/calls, serves the actions
// on calls, and asks the other nodes about their recording and listeners.
func TestANodeOfCallsServesAllOfThem(t *testing.T) {
	t.Parallel()
	settings, prefix := backendSettings(t)
	settings = withSettings(settings, "TRUNKLINE_ORIGINATION_DRIVER", "simulator")
	rest := newNode(t, "rest", withSettings(settings, "TRUNKLINE_ROLES", "ingest,normalizer,fanout,api"))
	calls := newNode(t, "calls", withSettings(settings, "TRUNKLINE_ROLES", "origination"))
	newCluster(t, strings.Split(settings["TRUNKLINE_KAFKA_BROKERS"], ","), prefix, rest, calls)
	admin := rest.dialler(t, "admin").header
	d := &dialler{calls, rest.dialler(t, "alice").header}
	id := d.dial(t, "9903")

	for path, c := range map[string]struct{ body, words string }{
		"recording": {`{"action":"start"}`, "no such call in progress"},
		"listeners": {`{"provider_id":"p"}`, "no such call in progress"}, // it is a simulated one
		"actions":   {`{"action":"hold"}`, "own PBX cannot do this"},
	} {
		a := calls.mustCall(t, http.MethodPost, "/api/v2/calls/"+id+"/"+path, admin, c.body)
		if !strings.Contains(string(a.body), c.words) {
			t.Errorf("%s: %s, want %q", path, a, c.words)
		}
	}

	hangUp := calls.startAction(t, admin, "calls/"+id, "hangup")
	if end := calls.awaitActionEnd(t, admin, hangUp); end.State != "confirmed" {
		t.Errorf("the call is not hung up: %+v", end)
	}
	if p := d.await(t, id, "ended"); p.Cause != "ORIGINATOR_CANCEL" {
		t.Errorf("the call ended with %s", p.Cause)
	}
}
