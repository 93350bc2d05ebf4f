package normalizer

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"trunkline/event"
	"trunkline/internal/jsonscan"
)

// capturedLegs are the rows of one captured call, after edit has changed the
// variables of each leg.
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
		var row event.CDR
		if out := normalizeOne(t, event.TopicCDRRaw, "freeswitch.json_cdr", value); json.Unmarshal(out, &row) != nil {
			t.Fatalf("%s", out)
		}
		rows = append(rows, row)
	}
	return rows
}

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
		{"click to call, the phone's leg told by app_log alone", "c2c-nobowout", without("last_arg"), "oc-38935054-8f29-47aa-959d-5d073dec3c8e"},
		{"a queue", "callcenter", asCaptured, "8369b4ea-7171-4929-a8fc-4a6ba863df24"},
		{"a queue, call_uuid being the leg's own (FS 1042)", "callcenter", func(v map[string]string) { v["call_uuid"] = v["uuid"] }, "8369b4ea-7171-4929-a8fc-4a6ba863df24"},
		{"two legs", "simple", asCaptured, "e895fedc-3fa1-4984-81a7-a24b81231590"},
		{"two legs, without originating_leg_uuid", "simple", without("originating_leg_uuid"), "e895fedc-3fa1-4984-81a7-a24b81231590"},
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

// The specification: on the leg to the destination and the loopback leg that
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

func TestUnixSecondsReadsEveryUnit(t *testing.T) {
	for in, want := range map[string]int64{
		`1795169706`: 1795169706, `"1795169706"`: 1795169706, `1795169706.9`: 1795169706, `1.795169706e9`: 1795169706,
		`1795169706190`: 1795169706, `"1795169706190966"`: 1795169706, `1795169706190966123`: 1795169706,
		`63957388906`: 1790169706, `63957388906190`: 1790169706, `63957388906190966`: 1790169706,
		`0`: 0, `"0"`: 0, `-5`: 0, `""`: 0, `"x"`: 0, `null`: 0, `{}`: 0, `true`: 0, ``: 0, `1e400`: 0, `"NaN"`: 0, `"Inf"`: 0,
	} {
		if got, ok := unixSeconds(jsonscan.Value(in)); got != want || ok != (want != 0) {
			t.Errorf("%s: got %d, %v, want %d", in, got, ok, want)
		}
	}
}
