package api

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"trunkline/event"
	"trunkline/identity"
	"trunkline/recording"
)

// cdrInQueue is the record of a call in a queue.
func cdrInQueue(call string) event.CDR {
	row := cdrOfLeg("demo", call, 1)
	row.InteractionID, row.OriginationCallID = "i-"+call, "o-"+call
	row.AgentID, row.QueueID, row.Direction = "1003@x", "sales@x", "inbound"
	row.AnsweredTime, row.BillingSeconds = callStart+3, new(int64(2))
	return row
}

func (e *env) metadataOf(t *testing.T, id string) (m recording.Metadata) {
	t.Helper()
	e.ask(200, "GET", recordingsPath+"/"+id+"/metadata", e.recorderHeader(), "", &m)
	return m
}

// recordingIDs returns the ids of a list.
func (e *env) recordingIDs(h header, query string) string {
	var page recording.Page
	e.ask(200, "GET", recordingsPath+query, h, "", &page)
	ids := []string{}
	for _, m := range page.Data {
		ids = append(ids, m.RecordingID)
	}
	return strings.Join(ids, " ")
}

// Whichever of recording and call record comes first, each knows the other.
func TestARecordingKnowsItsCall(t *testing.T) {
	e := newEnv(t)
	key := e.recorderHeader()
	whole := recording.Call{
		CallID: "before", InteractionID: "i-before", OriginationCallID: "o-before", AgentID: "1003@x",
		QueueID:   "sales@x",
		Direction: "inbound", StartedAt: callStart + 3, DurationMS: 2000, Channels: 2,
	}
	e.ask(201, "PUT", recordingsPath+"/r-before?call_id=before&channels=2", key, "audio", nil)

	if m := e.metadataOf(t, "r-before"); m.CallID != "before" || m.AgentID != "" {
		t.Errorf("before the record: %+v", m)
	}

	e.cdr.put(cdrInQueue("before"), cdrInQueue("after"))
	waitFor(t, func() bool { return e.metadataOf(t, "r-before").AgentID != "" })
	if m := e.metadataOf(t, "r-before"); m.Call != whole {
		t.Errorf("after the record: %+v", m.Call)
	}

	// The second recording of a call, and one that knows only the id of click to call.
	var stored recording.Metadata
	e.ask(201, "PUT", recordingsPath+"/r-second?call_id=before&agent_id=another", key, "audio", &stored)
	if stored.AgentID != "another" || stored.QueueID != "sales@x" {
		t.Errorf("what the upload says is kept: %+v", stored.Call)
	}

	e.ask(201, "PUT", recordingsPath+"/r-after", withHeader(key, "X-Recording-Origination-Call-ID", "o-after"),
		"audio", &stored)
	if stored.CallID != "after" || stored.InteractionID != "i-after" {
		t.Errorf("by its origination call id: %+v", stored.Call)
	}

	var page struct{ Data []event.CDR }
	e.ask(200, "GET", cdrReport(""), key, "", &page)
	named := map[string]string{}

	for _, row := range page.Data {
		named[row.CallID] = row.RecordingID
	}

	if want := map[string]string{"before": "r-before", "after": "r-after"}; !reflect.DeepEqual(named, want) {
		t.Errorf("the records name %v", named)
	}

	csv := e.ask(200, "GET", cdrReport("&format=csv"), key, "", nil).Body.String()
	if strings.Count(csv, "r-before") != 1 || strings.Count(csv, "r-after") != 1 {
		t.Errorf("CSV: %s", csv)
	}

	e.ask(204, "DELETE", recordingsPath+"/r-before", key, "", nil)
	var row event.CDR
	e.ask(200, "GET", cdrReport("&origination_call_id=o-before"), key, "", &row)

	if row.RecordingID != "r-second" {
		t.Errorf("after the first was deleted: %q", row.RecordingID)
	}
}

func TestRecordingsAreFoundByTheirCalls(t *testing.T) {
	e := newEnv(t)
	key := e.recorderHeader()
	for i, call := range []string{"a", "b", "c"} {
		at := fmt.Sprintf(
			"?call_id=%s&interaction_id=i-%[1]s&origination_call_id=o-%[1]s&agent_id=agent-%[1]s&queue_id=q-%[1]s&direction=d-%[1]s&started_at=%d",
			call, callStart+i*100)
		e.ask(201, "PUT", recordingsPath+"/r-"+call+at, key, "audio", nil)
	}

	for query, want := range map[string]string{
		"?call_id=b": "r-b", "?interaction_id=i-b": "r-b", "?origination_call_id=o-b": "r-b",
		"?agent_id=agent-b": "r-b",
		"?queue_id=q-b":     "r-b", "?direction=d-b": "r-b", "?agent_id=agent-b&queue_id=q-a": "", "?call_id=B": "",
		fmt.Sprintf("?startDate=%d&endDate=%d", callStart+100, callStart+199): "r-b",
		fmt.Sprintf("?startDate=%d", callStart+100):                           "r-c r-b",
		fmt.Sprintf("?endDate=%d", callStart+100):                             "r-b r-a",
		"?page_size=1&queue_id=q-a":                                           "r-a",
	} {
		if got := e.recordingIDs(key, query); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

func TestAWrongCallOfARecordingIsNamed(t *testing.T) {
	e := newEnv(t)
	for query, want := range map[string]string{
		"call_id=":                       "call_id required",
		"call_id=a&call_id=b":            "call_id invalid",
		"agent_id=%ff":                   "agent_id invalid",
		"queue_id=a%00":                  "queue_id invalid",
		"direction=" + longText(256):     "direction too_long",
		"started_at=yesterday":           "started_at wrong_type",
		"duration_ms=-1":                 "duration_ms out_of_range",
		"channels=65":                    "channels out_of_range",
		"channels=0&started_at=1.5":      "started_at wrong_type channels out_of_range",
		"caller=1":                       "caller unknown",
		"started_at=9999999999999999999": "started_at wrong_type",
	} {
		w := e.ask(400, "PUT", recordingsPath+"/r?"+query, e.recorderHeader(), "audio", nil)
		var answer struct {
			Errors []struct{ Field, Code string }
		}
		must(t, json.Unmarshal(w.Body.Bytes(), &answer))
		got := ""

		for _, f := range answer.Errors {
			got += " " + f.Field + " " + f.Code
		}

		if strings.TrimSpace(got) != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}

	e.ask(400, "PUT", recordingsPath+"/r?call_id=a",
		withHeader(e.recorderHeader(), "X-Recording-Call-Id", "b"), "audio", nil)
	e.ask(400, "PUT", recordingsPath+"/r", withHeader(e.recorderHeader(), "X-Recording-Channels", "many"), "audio", nil)
	e.ask(404, "GET", recordingsPath+"/r", e.recorderHeader(), "", nil)
}

func longText(n int) string { return strings.Repeat("x", n) }

// What a role sees of recordings is what an administrator sees, filtered.
func TestRecordingsOfARoleAreTheAdministratorsFiltered(t *testing.T) {
	members := membersByQueue{"sales@x": {"1003@x"}}
	e := newEnv(t, func(_ *Config, d *Deps) { d.Roster = members })
	for id, call := range map[string]string{
		"none": "", "sales": "?queue_id=sales@x", "support": "?queue_id=support@x&agent_id=1005@x",
		"member": "?queue_id=support@x&agent_id=1003@x",
		"prefix": "?agent_id=1003@xy",
	} {
		e.ask(201, "PUT", recordingsPath+"/"+id+call, e.recorderHeader(), "audio of "+id, nil)
	}

	for name, c := range map[string]struct {
		role      identity.Role
		extension string
		limits    identity.Limits
		sees      string
		listens   bool
	}{
		"supervisor": {identity.RoleSupervisor, "", identity.Limits{QueueIDs: []string{"sales@x"}}, "member sales",
			true},
		"all":       {identity.RoleSupervisor, "", identity.Limits{}, "member prefix sales support", true},
		"named":     {identity.RoleAgent, "", identity.Limits{AgentIDs: []string{"1003@x"}}, "member", true},
		"extension": {identity.RoleAgent, "1005", identity.Limits{}, "support", true},
		"auditor":   {identity.RoleAuditor, "", identity.Limits{}, "member none prefix sales support", false},
	} {
		h := withHeader(e.userWith("the-"+name, "demo", c.role, c.extension, c.limits), "X-Account-ID", "demo")
		listed := e.recordingIDs(h, "")
		for _, id := range []string{"member", "none", "prefix", "sales", "support"} {
			seen := strings.Contains(" "+c.sees+" ", " "+id+" ")
			described, audio := 404, 404
			if seen {
				described, audio = 200, 200
			}
			if !c.listens {
				audio = 403
			}
			if strings.Contains(" "+listed+" ", " "+id+" ") != seen {
				t.Errorf("%s is shown %q", name, listed)
			}

			e.ask(described, "GET", recordingsPath+"/"+id+"/metadata", h, "", nil)
			e.ask(audio, "GET", recordingsPath+"/"+id, h, "", nil)
			e.ask(403, "DELETE", recordingsPath+"/"+id, h, "", nil)
		}
	}
}
