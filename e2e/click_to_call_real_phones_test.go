package e2e

import (
	"slices"
	"testing"
	"time"
)

// TestClickToCallRingsRealPhones registers two phones from Debian and connects them with one
// request.
func TestClickToCallRingsRealPhones(t *testing.T) {
	t.Parallel()
	if !inNetworkNamespace(t) {
		return
	}

	n := newNode(t, "phones", map[string]string{"TRUNKLINE_DEMO_PASSWORD": password})
	n.start(t)
	registered := n.registrations(t)
	alice, bob := n.newPhone(t, "alice", "1001", 5071, 440), n.newPhone(t, "bob", "1002", 5081, 880)
	registered(2)
	r := newRecordingUser(t, n)
	r.recordCalls(t)
	d := n.dialler(t, "alice")
	id := d.dial(t, "1002")
	d.await(t, id, "bridged")
	time.Sleep(2 * time.Second) // of audio
	r.controlRecording(t, id, "pause")
	time.Sleep(time.Second)
	r.controlRecording(t, id, "resume")
	time.Sleep(2 * time.Second)
	alice.command(t, "hangup", "")
	p := d.await(t, id, "ended")
	if !slices.Equal(p.states(), wholeCall) || p.Cause != "NORMAL_CLEARING" {
		t.Errorf("progress %v, %s", p.states(), p.Cause)
	}

	row, all := d.findRecord(t, id, 3)
	checkRecords(t, id, "1002", "1001", row, all)
	r.mustHaveRecorded(t, id, alice, bob)

	if row.BillingSeconds < 3 || row.BillingSeconds > 30 {
		t.Errorf("billed %d s", row.BillingSeconds)
	}

	for _, heard := range []struct {
		by, other *phone
	}{{alice, bob}, {bob, alice}} {
		if got := heard.by.loudestFrequency(t); got < heard.other.hertz*9/10 || got > heard.other.hertz*11/10 {
			t.Errorf("the phone that plays %d Hz received %d Hz, not the other's %d", heard.by.hertz, got,
				heard.other.hertz)
		}
	}
}
