package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"trunkline/internal/freeport"
)

// dialler places calls as a user of the demo account.
type dialler struct {
	*node
	header map[string]string
}

func (n *node) dialler(t testing.TB, username string) *dialler {
	t.Helper()
	var session portalSession
	body := fmt.Sprintf(`{"username":%q,"password":%q,"domain":"demo.local"}`, username, password)
	a := n.mustCall(t, http.MethodPost, "/ucp/v2/login", map[string]string{"Content-Type": typeJSON}, body)
	if err := json.Unmarshal(a.body, &session); err != nil || a.status != http.StatusOK {
		t.Fatalf("logging %s in: %v", username, a)
	}
	return &dialler{n, map[string]string{"Authorization": "Bearer " + session.AccessToken}}
}

// dial requests a call, which must be accepted.
func (d *dialler) dial(t testing.TB, destination string) (id string) {
	t.Helper()
	a := d.mustCall(t, http.MethodPost, "/ucp/v2/c2c/"+url.PathEscape(destination), d.header, "")
	var got struct {
		ID string `json:"origination_call_id"`
	}
	if err := json.Unmarshal(a.body, &got); err != nil || a.status != http.StatusCreated || got.ID == "" {
		t.Fatalf("calling %s: %v", destination, a)
	}
	return got.ID
}

type callProgress struct {
	State   string `json:"state"`
	Cause   string `json:"cause"`
	History []struct {
		State string  `json:"state"`
		At    float64 `json:"at"`
	} `json:"history"`
}

func (p callProgress) states() (states []string) {
	for _, step := range p.History {
		states = append(states, step.State)
	}
	return states
}

// await waits until the call reaches a state.
func (d *dialler) await(t testing.TB, id, state string) (p callProgress) {
	t.Helper()
	eventually(t, "the call to be "+state, func() error {
		a := d.mustCall(t, http.MethodGet, "/api/v2/calls/"+id, d.header, "")
		if err := json.Unmarshal(a.body, &p); err != nil || a.status != http.StatusOK {
			t.Fatalf("progress: %v", a)
		}
		if !slices.Contains(p.states(), state) {
			return errors.New(p.State)
		}

		return nil
	})

	return p
}

type callRecord struct {
	CallID            string            `json:"call_id"`
	InteractionID     string            `json:"interaction_id"`
	OriginationCallID string            `json:"origination_call_id"`
	To                string            `json:"to"`
	PresenceID        string            `json:"presence_id"`
	HangupCause       string            `json:"hangup_cause"`
	MediaServer       string            `json:"media_server"`
	RecordingID       string            `json:"recording_id"`
	AnsweredTime      int64             `json:"answered_time"`
	BillingSeconds    int64             `json:"billing_seconds"`
	CustomSIPHeaders  map[string]string `json:"custom_sip_headers"`
}

// report requests the call records of the last minutes.
func (d *dialler) report(t testing.TB, filter string, into any) error {
	t.Helper()
	now := time.Now().Unix()
	path := fmt.Sprintf("/api/v2/reports/cdrs?startDate=%d&endDate=%d&%s", now-600, now+1, filter)
	a := d.mustCall(t, http.MethodGet, path, d.header, "")
	if a.status != http.StatusOK {
		return errors.New(a.String())
	}
	return json.Unmarshal(a.body, into)
}

// findRecord returns the call's record, by its origination_call_id, and all legs of its interaction,
// once there are that many.
func (d *dialler) findRecord(t testing.TB, id string, legs int) (row callRecord, all []callRecord) {
	t.Helper()
	eventuallyWithin(t, patience, "the record of the call", func() error {
		if err := d.report(t, "origination_call_id="+id, &row); err != nil {
			return err
		}

		var page struct {
			Data []callRecord `json:"data"`
		}
		err := d.report(t, "interaction_id="+row.InteractionID, &page)
		all = page.Data
		if err == nil && len(all) < legs {
			return fmt.Errorf("%d legs", len(all))
		}
		if err != nil {
			return err
		}

		row = callRecord{} // reset: the previous row may be of another leg, indexed earlier
		return d.report(t, "origination_call_id="+id, &row)
	})

	return row, all
}

// checkRecords checks the records of a click to call against docs/calls.md.
func checkRecords(t testing.TB, id, destination, owner string, row callRecord, all []callRecord) {
	t.Helper()
	if row.OriginationCallID != id || row.To != destination || row.CustomSIPHeaders["svc_call_type"] != "clicktocall" ||
		row.CallID == id || row.CallID == "" {
		t.Errorf("the record found: %+v", row)
	}

	carry, owners := 0, 0
	for _, leg := range all {
		if leg.InteractionID != row.InteractionID {
			t.Errorf("another interaction's leg: %+v", leg)
		}
		if leg.OriginationCallID == id {
			carry++
		}

		if leg.PresenceID == owner && leg.To == owner {
			owners++
			if leg.OriginationCallID != "" {
				t.Errorf("the owner's leg carries the id: %+v", leg)
			}
		}
	}

	if carry != 2 || owners != 1 {
		t.Errorf("%d legs carry the id, %d are the owner's: %+v", carry, owners, all)
	}
}

var wholeCall = []string{"accepted", "ringing_user", "user_answered", "dialling", "bridged", "ended"}

// TestNoCallIsInvented runs without origination.driver: an owner without a registered phone gets
// 201, and the call ends before the destination is dialled.
func TestNoCallIsInvented(t *testing.T) {
	t.Parallel()
	n := newNode(t, "unset",
		map[string]string{"TRUNKLINE_DEMO_PASSWORD": password, "TRUNKLINE_SIP_LISTEN": freeport.Address(t)})
	n.start(t)
	d := n.dialler(t, "alice")
	id := d.dial(t, "1002")
	p := d.await(t, id, "ended")
	if !slices.Equal(p.states(), []string{"accepted", "ended"}) || p.Cause != "SUBSCRIBER_ABSENT" {
		t.Errorf("progress %v, %s", p.states(), p.Cause)
	}

	var page struct {
		Data []callRecord `json:"data"`
	}
	eventually(t, "the record of the owner's leg", func() error {
		if err := d.report(t, "", &page); err != nil || len(page.Data) > 0 {
			return err
		}
		return errors.New("there is no record")
	})

	for _, leg := range page.Data {
		if leg.To != "1001" || leg.OriginationCallID != "" || leg.MediaServer == "simulator" {
			t.Errorf("a leg that was not the owner's: %+v", leg)
		}
	}
}

// TestClickToCall places simulated calls, for owners without a registered phone.
func TestClickToCall(t *testing.T) {
	t.Parallel()
	n := embeddedCluster(t).nodes[0]
	d := n.dialler(t, "alice")
	s := n.subscribe(t,
		subscription{paths: apiPaths, token: n.login(t, apiPaths, user("bob").types("AGENT_CUSTOM_EVENT"))})
	id := d.dial(t, "+4930123456")
	p := d.await(t, id, "ended")
	if !slices.Equal(p.states(), wholeCall) || p.Cause != "NORMAL_CLEARING" {
		t.Errorf("progress %v, %s", p.states(), p.Cause)
	}

	row, all := d.findRecord(t, id, 3)
	checkRecords(t, id, "+4930123456", "1001", row, all)
	if row.HangupCause != "NORMAL_CLEARING" || row.AnsweredTime == 0 {
		t.Errorf("the record found: %+v", row)
	}

	eventually(t, "the progress on the channel", func() error {
		var states []string
		for _, e := range s.events() {
			var data struct {
				Event string `json:"event"`
				ID    string `json:"origination_call_id"`
				State string `json:"state"`
			}
			if err := json.Unmarshal(e.Data, &data); err == nil && data.Event == "call.progress" && data.ID == id {
				states = append(states, data.State)
			}
		}

		if !slices.Equal(states, wholeCall) {
			return fmt.Errorf("%v", states)
		}

		return nil
	})

	for destination, cause := range map[string]string{"9901": "USER_BUSY", "9902": "CALL_REJECTED",
		"9903": "NO_ANSWER"} {
		if p := d.await(t, d.dial(t, destination), "ended"); p.Cause != cause {
			t.Errorf("%s: %s", destination, p.Cause)
		}
	}

	cancelled := d.dial(t, "1002")
	if a := d.mustCall(t, http.MethodDelete, "/api/v2/calls/"+cancelled, d.header,
		""); a.status != http.StatusAccepted {
		t.Errorf("cancelling: %v", a)
	}
	if p := d.await(t, cancelled, "ended"); p.Cause != "ORIGINATOR_CANCEL" {
		t.Errorf("cancelled: %s", p.Cause)
	}

	admin := n.dialler(t, "admin").header
	hungUp := d.dial(t, "9903")
	if end := n.awaitActionEnd(t, admin, n.startAction(t, admin, "calls/"+hungUp, "hangup")); end.State != "confirmed" {
		t.Errorf("the action that hung a call up: %+v", end)
	}
	if p := d.await(t, hungUp, "ended"); p.Cause != "ORIGINATOR_CANCEL" {
		t.Errorf("hung up by an action: %s", p.Cause)
	}

	key := n.cli(t, "apikey", "create", "--account", "demo", "--scope", "ingest,read,recordings,calls")
	eventually(t, "the key to be refused", func() error {
		a := n.mustCall(t, http.MethodPost, "/ucp/v2/c2c/1002", map[string]string{"X-API-Key": key}, "")
		if a.status != http.StatusForbidden {
			return errors.New(a.String())
		}
		return nil
	})

	if a := n.mustCall(t, http.MethodPost, "/ucp/v2/c2c/1002", admin,
		""); a.status != http.StatusUnprocessableEntity {
		t.Errorf("a user without an extension: %v", a)
	}
}
