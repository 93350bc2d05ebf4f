package asterisk

import (
	"testing"

	"trunkline/event"
)

// The numbers of Status are those of Asterisk's ast_device_state.
func TestEachStatusOfAMember(t *testing.T) {
	type want struct {
		device event.Device
		state  event.State
	}
	phone := Member{Interface: "PJSIP/1001", StateInterface: "PJSIP/1001"}
	local := Member{Interface: "Local/1001@from-queue/n", StateInterface: "Local/1001@from-queue/n"}

	// as FreePBX writes it
	follow := Member{Interface: "Local/1001@from-queue/n", StateInterface: "hint:1001@ext-local"}
	pool := Member{Interface: "Local/9@agents/n", StateInterface: "Agent:9"}
	for _, c := range []struct {
		status                      string
		phone, local, follows, pool want
	}{
		{"0", want{event.DeviceUnknown, event.Available}, want{event.DeviceUnknown, event.Available},
			want{event.DeviceUnknown, event.Available}, want{event.DeviceUnknown, event.Available}},
		{"1", want{event.DeviceIdle, event.Available}, want{event.DeviceIdle, event.Available},
			want{event.DeviceIdle, event.Available}, want{event.DeviceIdle, event.Available}},
		{"2", want{event.DeviceInUse, event.Talking}, want{event.DeviceUnknown, ""},
			want{event.DeviceInUse, event.Talking}, want{event.DeviceWrapUp, event.WrapUp}},
		{"3", want{event.DeviceBusy, event.OtherState}, want{event.DeviceBusy, event.OtherState},
			want{event.DeviceBusy, event.OtherState}, want{event.DeviceWrapUp, event.WrapUp}},
		{"4", want{event.DeviceUnreachable, event.OtherState}, want{event.DeviceUnreachable, event.OtherState},
			want{event.DeviceUnreachable, event.OtherState}, want{event.DeviceUnreachable, event.OtherState}},
		{"5", want{event.DeviceUnreachable, event.OtherState}, want{event.DeviceUnreachable, event.OtherState},
			want{event.DeviceUnreachable, event.OtherState}, want{event.DeviceUnreachable, event.OtherState}},
		{"6", want{event.DeviceRinging, event.Ringing}, want{event.DeviceRinging, event.Ringing},
			want{event.DeviceRinging, event.Ringing}, want{event.DeviceRinging, event.Ringing}},
		{"7", want{event.DeviceInUse, event.Talking}, want{event.DeviceUnknown, ""},
			want{event.DeviceInUse, event.Talking}, want{event.DeviceWrapUp, event.WrapUp}},
		{"8", want{event.DeviceInUse, event.Talking}, want{event.DeviceUnknown, ""},
			want{event.DeviceInUse, event.Talking}, want{event.DeviceWrapUp, event.WrapUp}},
	} {
		for m, want := range map[Member]want{phone: c.phone, local: c.local, follow: c.follows, pool: c.pool} {
			m.Status = c.status
			if got := m.AgentReport().Device; got != want.device || m.State() != want.state {
				t.Errorf("%s by %s with status %s: %s, %s", m.Interface, m.StateInterface, c.status, got, m.State())
			}

			if paused := m; want.state == event.Available || want.state == event.OtherState {
				paused.Paused = true
				if paused.State() != event.Break {
					t.Errorf("%s with status %s is paused: %s", m.Interface, c.status, paused.State())
				}
			}

			m.InCall = true
			if busy := m.State(); busy != event.Talking && c.status != "1" {
				t.Errorf("%s with status %s has a call of the queue: %s", m.Interface, c.status, busy)
			}
		}
	}

	for status, presence := range map[string]event.State{"1": event.Available, "2": event.Available,
		"3": event.Available, "5": event.Offline} {
		agent := pool
		agent.Status = status
		if report := agent.AgentReport(); report.Presence != presence || report.OtherID != "9" {
			t.Errorf("the agent of the pool with status %s: %+v", status, report)
		}
	}
}
