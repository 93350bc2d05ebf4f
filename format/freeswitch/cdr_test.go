package freeswitch

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"trunkline/event"
	"trunkline/format"
)

// readOne returns the row of a record that Kafka got after all captures.
func readOne(t *testing.T, record []byte) event.CDR {
	t.Helper()
	var fields format.Fields
	row, err := jsonCDRFormat.ReadCDR(record, &fields, format.CallTimes{Recorded: 1_795_432_000})
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// capturedLegs returns the rows of one captured call, after edit has changed
// the variables of each leg.
func capturedLegs(t *testing.T, call string, edit func(vars map[string]string)) (rows []event.CDR) {
	t.Helper()
	in, err := os.ReadFile("testdata/freeswitch.json_cdr/" + call + ".in.jsonl")
	if err != nil {
		t.Fatal(err)
	}

	for line := range strings.Lines(string(in)) {
		var record map[string]json.RawMessage
		var vars map[string]string
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(record["variables"], &vars); err != nil {
			t.Fatal(err)
		}

		edit(vars)
		record["variables"], _ = json.Marshal(vars)
		value, _ := json.Marshal(record)
		rows = append(rows, readOne(t, value))
	}

	return rows
}

// interactions counts the rows of each interaction id.
func interactions(rows []event.CDR) map[string]int {
	ids := make(map[string]int)
	for _, r := range rows {
		ids[r.InteractionID]++
	}
	return ids
}

func TestLegsOfACallShareItsInteraction(t *testing.T) {
	asCaptured := func(map[string]string) {}
	without := func(names ...string) func(map[string]string) {
		return func(vars map[string]string) {
			for _, name := range names {
				delete(vars, name)
			}
		}
	}

	for _, c := range []struct {
		name, call string
		edit       func(map[string]string)
		want       string
	}{
		{"click to call", "c2c-nobowout", asCaptured, "oc-38935054-8f29-47aa-959d-5d073dec3c8e"},
		{"click to call, the phone's leg told by app_log alone", "c2c-nobowout", without("last_arg"),
			"oc-38935054-8f29-47aa-959d-5d073dec3c8e"},
		{"a queue", "callcenter", asCaptured, "8369b4ea-7171-4929-a8fc-4a6ba863df24"},
		{"a queue, call_uuid being the leg's own (FS 1042)", "callcenter",
			func(v map[string]string) { v["call_uuid"] = v["uuid"] }, "8369b4ea-7171-4929-a8fc-4a6ba863df24"},
		{"two legs", "simple", asCaptured, "e895fedc-3fa1-4984-81a7-a24b81231590"},
		{"two legs, without originating_leg_uuid", "simple", without("originating_leg_uuid"),
			"e895fedc-3fa1-4984-81a7-a24b81231590"},
		{"a loopback that bowed out", "bowout", asCaptured, "eff46593-5bb8-4264-a579-d97d442771b9"},
		{"a loopback that bowed out, call_uuid reset at the hangup", "bowout",
			func(v map[string]string) { v["call_uuid"] = v["uuid"] }, "eff46593-5bb8-4264-a579-d97d442771b9"},
		{"a ring group", "ring-group", asCaptured, "94b74fe5-46e3-4490-9872-440d917a543c"},
		{"an exported id", "c2c-nobowout", func(v map[string]string) { v["interaction_id"] = "mine" }, "mine"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows := capturedLegs(t, c.call, c.edit)
			if ids := interactions(rows); ids[c.want] != len(rows) {
				t.Errorf("got %v, want all %d legs in %s", ids, len(rows), c.want)
			}
		})
	}
}

func TestInteractionOfALegFromItsVariables(t *testing.T) {
	for _, c := range []struct{ name, variables, want string }{
		{"call_uuid names the call after a bow-out, originator the loopback leg that is gone",
			`"direction":"outbound","call_uuid":"first","originating_leg_uuid":"loopback","originator":"loopback"`,
			"first"},
		{"call_uuid is the leg's own", `"direction":"outbound","call_uuid":"self","originator":"first"`, "first"},
		{"an inbound leg began the call, whatever it was joined with",
			`"direction":"inbound","call_uuid":"other","originator":"other"`, "self"},
		{"the far side of a loopback that no leg dialled",
			`"direction":"inbound","loopback_leg":"B","other_loopback_leg_uuid":"near","call_uuid":"self"`, "near"},
		{"the near side of a loopback that no leg dialled",
			`"direction":"outbound","loopback_leg":"A","other_loopback_leg_uuid":"far","call_uuid":"self"`, "self"},
		{"an exported id comes first",
			`"direction":"outbound","call_uuid":"first","cc_member_session_uuid":"m","interaction_id":"mine"`, "mine"},
	} {
		record := `{"variables":{"uuid":"self","start_epoch":"1795169700",` + c.variables + `}}`
		if row := readOne(t, []byte(record)); row.InteractionID != c.want {
			t.Errorf("%s: got %q, want %q", c.name, row.InteractionID, c.want)
		}
	}
}

// to is the number dialled on the leg; from and caller_id_number are the caller's
// number and never a phone's contact.
func TestCapturedLegsNameWhoCalledWhom(t *testing.T) {
	type parties struct{ from, to, number, name string }
	for call, legs := range map[string]map[string]parties{
		"did": {
			// dialled the DID; 1002 answered
			"5aefd3ac-fcdc-4f97-8ef4-1077b4ce544f": {"1001", "5551212", "1001", "1001"},
		},
		"ring-group": {
			"94b74fe5-46e3-4490-9872-440d917a543c": {"1001", "6000", "1001", "1001"}, // dialled the group
			"9b9fb247-eda4-4a6d-b8df-a14a68783f67": {"1001", "1070", "1001", "Extension 1001"},
		},
		"bowout": {
			"eff46593-5bb8-4264-a579-d97d442771b9": {"1001", "771002", "1001", "1001"},
			// loopback A, whose caller was overwritten by its callee
			"ac827d37-68eb-486c-83c8-b32a0b07dbc1": {"1001", "1002", "1001", ""},
			"8ccfda5f-64a3-4797-ad74-a3d279c2d87e": {"1001", "1002", "1001", "Extension 1001"},
			"d1517eae-cdac-4369-b49b-440742317713": {"1001", "1002", "1001", "Extension 1001"},
		},
		"simple": { // 1001's phone was rung and then transferred to 1002
			"e895fedc-3fa1-4984-81a7-a24b81231590": {"1002", "1001", "1002", ""},
			"55961ebe-6e81-492a-92dd-6a94d6c73929": {"1001", "1002", "1001", "Ann"},
		},
		"callcenter": { // 1001's phone was rung for 15551230001 and then transferred to a queue
			"8369b4ea-7171-4929-a8fc-4a6ba863df24": {"15551230001", "1001", "15551230001", "Caller"},
			"252301b6-cdee-4df2-a797-687d3c86b4fb": {"1001", "1002", "1001", "Ann"},
		},
		"c2c-nobowout": {
			"93505f3f-3700-434c-807b-bb6ecead4738": {"1002", "1001", "1002", ""},
			"c91d5c98-2686-43fd-8edd-5e54801af321": {"", "1002", "", ""}, // its record has no number of the caller
			"0079da6c-35c4-4394-bd1c-205a1dd7efa9": {"1001", "1002", "1001", "Ann"},
			"04673e0b-4f5f-43dc-977a-23a07ee336c0": {"1001", "1002", "1001", "Ann"},
		},
	} {
		rows := capturedLegs(t, call, func(map[string]string) {})
		if len(rows) != len(legs) {
			t.Errorf("%s: %d rows, want %d", call, len(rows), len(legs))
		}

		for _, row := range rows {
			if got := (parties{row.From, row.To, row.CallerIDNumber, row.CallerIDName}); got != legs[row.CallID] {
				t.Errorf("%s, leg %s: got %+v, want %+v", call, row.CallID, got, legs[row.CallID])
			}
		}
	}
}

// See docs/topics.md: on the leg to the destination and the loopback leg that
// made it, not on the leg that rings the user's own phone.
func TestOriginationCallIDIsNotOnTheUsersOwnPhone(t *testing.T) {
	const phone, id = "93505f3f-3700-434c-807b-bb6ecead4738", "oc-38935054-8f29-47aa-959d-5d073dec3c8e"
	for name, edit := range map[string]func(map[string]string){
		"as captured":                       func(map[string]string) {},
		"the variable set on every leg":     func(v map[string]string) { v["origination_call_id"] = id },
		"Kazoo's variable set on every leg": func(v map[string]string) { v["sip_origination_call_uuid"] = id },
	} {
		t.Run(name, func(t *testing.T) {
			for _, row := range capturedLegs(t, "c2c-nobowout", edit) {
				want := id
				if row.CallID == phone {
					want = ""
				}
				if row.OriginationCallID != want {
					t.Errorf("leg %s: %q", row.CallID, row.OriginationCallID)
				}
			}
		})
	}
}
