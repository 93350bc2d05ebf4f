package freeswitch

import (
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"trunkline/origination"
)

// A phone hangs up, or rejects with 486, on command.
func TestRealPhonesHangUp(t *testing.T) {
	cfg := realConfig(t)
	d, _, j := follow(t, cfg)
	for _, test := range []struct {
		name, from, to, phone string
		at                    origination.State
		want                  []string
	}{
		{"owner, while the destination rings", "1001", "1003", "127.0.0.21", origination.Dialling,
			[]string{ringing, answered, dialling, ended, "NORMAL_CLEARING"}},
		{"owner, while it rings", "1003", "1002", "127.0.0.23", origination.RingingUser,
			[]string{ringing, ended, "USER_BUSY"}},
		{"destination, while it rings", "1001", "1003", "127.0.0.23", origination.Dialling,
			[]string{ringing, answered, dialling, ended, "USER_BUSY"}},
		{"owner, in conversation", "1001", "1002", "127.0.0.21", origination.Bridged,
			[]string{ringing, answered, dialling, joined, ended, "NORMAL_CLEARING"}},
		{"destination, in conversation", "1001", "1002", "127.0.0.22", origination.Bridged,
			[]string{ringing, answered, dialling, joined, ended, "NORMAL_CLEARING"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := realOrder(test.from, test.to)
			if _, err := d.Originate(t.Context(), o); err != nil {
				t.Fatal(err)
			}

			j.Await(t, o.ID, test.at)
			time.Sleep(500 * time.Millisecond) // for the phone to ring
			phone, err := net.Dial("tcp", test.phone+":4444")
			if err != nil {
				t.Fatal(err)
			}
			defer phone.Close()

			if _, err := io.WriteString(phone, `20:{"command":"hangup"},`); err != nil {
				t.Fatal(err)
			}

			j.Await(t, o.ID, origination.Ended)
			if got := j.States(o.ID); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}

			noChannels(t, d.platform, o)
		})
	}
}
