package stats

import (
	"slices"
	"strings"
	"testing"

	"trunkline/event"
)

// A day computed by hand: two agents and six calls on one queue.
//
//	09:00–09:15  c1 waits 12 s, talks 120 s (15 s on hold), 30 s wrap-up; c2 hangs up after 3 s;
//	             c3 waits 40 s, talks 400 s, until 09:16:40
//	09:15–09:30  c4 hangs up after 61 s; c5 leaves by key after 10 s
//	09:30–09:45  c6 waits 5 s, talks 60 s and is transferred
//
//	1001  logged in 09:00–09:40, break "lunch" 09:20–09:35
//	1002  logged in 09:05–09:40; rings for c4 from 09:20:05 to 09:20:25
func handComputedDay() *script {
	leg := event.Facts{CallID: "c1", InteractionID: "c1"}
	held, resumed := leg, leg
	held.Name, resumed.Name = event.NameCallHeld, event.NameCallResumed

	return new(script).
		at("09:00:00", login("1001")).
		at("09:01:00", entered("support", "c1")).at("09:01:02", offered("support", "c1", "1001")).
		at("09:01:12", answered("support", "c1", "1001")).at("09:02:00", held).at("09:02:15", resumed).
		at("09:03:12", ended("support", "c1", "1001")).at("09:03:12", agentState("1001", event.WrapUp)).at("09:03:42",
		agentState("1001", event.Available)).
		at("09:05:00", login("1002")).
		at("09:06:00", entered("support", "c2")).at("09:06:03", abandoned("support", "c2")).
		at("09:09:20", entered("support", "c3")).at("09:09:50", offered("support", "c3", "1002")).at("09:10:00",
		answered("support", "c3", "1002")).
		at("09:16:40", ended("support", "c3", "1002")).
		at("09:20:00", onBreak("1001", "lunch")).
		at("09:20:00", entered("support", "c4")).at("09:20:05", offered("support", "c4", "1002")).at("09:20:25",
		noAnswer("support", "c4", "1002")).
		at("09:21:01", abandoned("support", "c4")).
		at("09:25:00", entered("support", "c5")).at("09:25:10", ended("support", "c5", "")).
		at("09:35:00", offBreak("1001")).
		at("09:36:00", entered("support", "c6")).at("09:36:01", offered("support", "c6", "1001")).at("09:36:05",
		answered("support", "c6", "1001")).
		at("09:37:05", event.Facts{Name: event.NameCallTransferred, CallID: "c6"}).at("09:37:05",
		ended("support", "c6", "1001")).
		at("09:40:00", logout("1001")).at("09:40:00", logout("1002"))
}

func TestFiguresOfAHandComputedDay(t *testing.T) {
	rows := topic{}
	rows.applyFlush(handComputedDay().foldEvents())
	var got []string

	for key, value := range rows {
		if strings.Contains(key, "|queue|") || strings.Contains(key, "|agent|") {
			got = append(got, value)
		}
	}

	slices.Sort(got)
	// 1795165200 is 2026-11-20 09:00 UTC.
	want := []string{
		`{"account_id":"acme","agent_id":"1001","interval_start":1795165200,"interval_seconds":900,"logged_in_ms":900000,"available_ms":740000,"talking_ms":120000,"wrap_up_ms":30000,"break_ms":0,"offered":1,"answered":1,"no_answer":0}`,
		`{"account_id":"acme","agent_id":"1001","interval_start":1795166100,"interval_seconds":900,"logged_in_ms":900000,"available_ms":300000,"talking_ms":0,"wrap_up_ms":0,"break_ms":600000,"offered":0,"answered":0,"no_answer":0,"break_ms_by_reason":{"lunch":600000}}`,
		`{"account_id":"acme","agent_id":"1001","interval_start":1795167000,"interval_seconds":900,"logged_in_ms":600000,"available_ms":236000,"talking_ms":60000,"wrap_up_ms":0,"break_ms":300000,"offered":1,"answered":1,"no_answer":0,"break_ms_by_reason":{"lunch":300000}}`,
		`{"account_id":"acme","agent_id":"1002","interval_start":1795165200,"interval_seconds":900,"logged_in_ms":600000,"available_ms":290000,"talking_ms":300000,"wrap_up_ms":0,"break_ms":0,"offered":1,"answered":1,"no_answer":0}`,
		`{"account_id":"acme","agent_id":"1002","interval_start":1795166100,"interval_seconds":900,"logged_in_ms":900000,"available_ms":780000,"talking_ms":100000,"wrap_up_ms":0,"break_ms":0,"offered":1,"answered":0,"no_answer":1}`,
		`{"account_id":"acme","agent_id":"1002","interval_start":1795167000,"interval_seconds":900,"logged_in_ms":600000,"available_ms":600000,"talking_ms":0,"wrap_up_ms":0,"break_ms":0,"offered":0,"answered":0,"no_answer":0}`,
		`{"account_id":"acme","queue_id":"support","interval_start":1795165200,"interval_seconds":900,"offered":3,"answered":2,"abandoned":1,"abandoned_short":1,"answered_within":1,"transferred":0,"service_level_seconds":20,"short_abandon_seconds":5,"wait_ms_total":52000,"wait_ms_max":40000,"abandon_wait_ms_total":3000,"talk_ms_total":520000,"hold_ms_total":15000,"wrap_up_ms_total":30000,"service_level":0.5,"service_level_strict":0.3333}`,
		`{"account_id":"acme","queue_id":"support","interval_start":1795166100,"interval_seconds":900,"offered":2,"answered":0,"abandoned":1,"abandoned_short":0,"answered_within":0,"transferred":0,"service_level_seconds":20,"short_abandon_seconds":5,"wait_ms_total":0,"wait_ms_max":61000,"abandon_wait_ms_total":61000,"talk_ms_total":0,"hold_ms_total":0,"wrap_up_ms_total":0,"service_level":0,"service_level_strict":0}`,
		`{"account_id":"acme","queue_id":"support","interval_start":1795167000,"interval_seconds":900,"offered":1,"answered":1,"abandoned":0,"abandoned_short":0,"answered_within":1,"transferred":1,"service_level_seconds":20,"short_abandon_seconds":5,"wait_ms_total":5000,"wait_ms_max":5000,"abandon_wait_ms_total":0,"talk_ms_total":60000,"hold_ms_total":0,"wrap_up_ms_total":0,"service_level":1,"service_level_strict":1}`,
	}

	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("missing: %s", want[i])
		case i >= len(want):
			t.Errorf("too many: %s", got[i])
		case got[i] != want[i]:
			t.Errorf("\n got %s\nwant %s", got[i], want[i])
		}
	}
}
