package cdrindex

import (
	"context"
	"testing"

	"trunkline/event"
)

// recordingsByCall has the recordings of calls, by call id.
type recordingsByCall map[string]string

func (r recordingsByCall) OfCalls(_ context.Context, _ string, callIDs []string) (map[string]string, error) {
	found := map[string]string{}
	for _, id := range callIDs {
		if recording, ok := r[id]; ok {
			found[id] = recording
		}
	}
	return found, nil
}

// An Asterisk with the mapping of the sequence sends a record for each phone that a channel rang; its
// recording has the channel's id.
func TestARecordingAndTheRecordsOfItsLegFindEachOther(t *testing.T) {
	part := func(id string, start, billed int64, cause, agent string) event.CDR {
		row := call("acme", id, start)
		row.AnsweredTime, row.BillingSeconds, row.HangupCause, row.AgentID = start, &billed, cause, agent
		return row
	}

	named := func(id string) event.CDR { // as Kazoo's Media-Recording-ID does
		row := part(id, november, 5, "NORMAL_CLEARING", "")
		row.RecordingID = "202611-0a1b2c3d"
		return row
	}

	onBoth(t, func(t *testing.T, x *Index) {
		storeRows(t, x,
			part("1795685659.2-9", november, 8, "NO_ANSWER", ""),
			part("1795685659.2-10", november+9, 5, "NORMAL_CLEARING", "PJSIP/1003"),
			part("1795685659.2-12", november+14, 3, "NORMAL_CLEARING", "PJSIP/1009"),
			part("1795685659.2-x", november+14, 3, "NORMAL_CLEARING", "PJSIP/1"),
			part("1795685659.20-11", november+5, 5, "NORMAL_CLEARING", "PJSIP/1004"),
			part("1795685660.1", november+5, 5, "NORMAL_CLEARING", "PJSIP/1005"),
			part("1795685660.1-77", november+9, 5, "NORMAL_CLEARING", "PJSIP/1006"), named("kept-here"),
			named("kept-there"))

		for id, want := range map[string]string{"1795685659.2": "PJSIP/1003", "1795685659.20": "PJSIP/1004",
			"1795685660.1": "PJSIP/1005", "1795685659.2-12": "PJSIP/1009", "1795685659": ""} {
			row, ok, err := x.FindCall(t.Context(), "acme", id, "")
			if err != nil || ok != (want != "") || row.AgentID != want {
				t.Errorf("%s: found %t %s of %s, %v; want %s", id, ok, row.CallID, row.AgentID, err, want)
			}
		}

		if _, ok, err := x.FindCall(t.Context(), "zeta", "1795685659.2", ""); ok || err != nil {
			t.Errorf("of another account: %t, %v", ok, err)
		}

		x.recordings = recordingsByCall{"1795685659.2": "r1", "1795685660.1": "r2", "1795685660.1-77": "r3",
			"kept-here": "r4"}
		defer func() { x.recordings = nil }()

		for id, want := range map[string]string{"1795685659.2-9": "r1", "1795685659.2-12": "r1", "1795685659.2-x": "",
			"1795685659.20-11": "", "1795685660.1": "r2", "1795685660.1-77": "r3", "kept-here": "r4",
			"kept-there": "202611-0a1b2c3d"} {
			row, ok, err := x.FindCall(t.Context(), "acme", id, "")
			if err != nil || !ok || row.RecordingID != want {
				t.Errorf("%s: the recording is %q, %t, %v; want %q", id, row.RecordingID, ok, err, want)
			}
		}
	})
}
