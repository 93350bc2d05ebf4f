package freeswitch

import (
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"trunkline/internal/setting"
	"trunkline/origination"
	"trunkline/origination/drivertest"
	"trunkline/origination/eventdriver"
)

// realConfig is for a FreeSWITCH with testdata/real/freeswitch.xml and seven
// phones: 1001, 1002 and one of 1005's two answer by themselves, 1003, the other
// of 1005 and both of 1006 ring. testdata/real/README.md says how to run it.
func realConfig(t *testing.T) Config {
	address := os.Getenv("FREESWITCH_ESL")
	if address == "" {
		t.Skip("FREESWITCH_ESL is not set")
	}

	s := DefaultSettings()
	s.Address, s.Password, s.Domain = address, setting.Secret(os.Getenv("FREESWITCH_PASSWORD")), os.Getenv(
		"FREESWITCH_DOMAIN")
	s.RingUser, s.RingDestination, s.CallerName = 4*time.Second, 4*time.Second, "Ann Lee"

	return Config{Settings: s,
		Limits: eventdriver.Limits{MaxCalls: 100, CompareEvery: time.Second, GoneAfter: time.Second}}
}

func realOrder(from, to string) origination.Order {
	o := order("c2c-" + uuid.NewString())
	o.Extension, o.Destination = from, to
	return o
}

const accepted = origination.Accepted

func TestRealCalls(t *testing.T) {
	cfg := realConfig(t)
	for _, test := range []struct {
		name, from, to string
		cancel         origination.State
		want           []string
	}{
		{"two phones, cancelled in conversation", "1001", "1002", origination.Bridged,
			[]string{ringing, answered, dialling, joined, ended, "ORIGINATOR_CANCEL"}},
		{"destination hangs up", "1001", "9198", "",
			[]string{ringing, answered, dialling, joined, ended, "NORMAL_CLEARING"}},
		{"early media is not an answer", "1001", "9197", origination.Bridged,
			[]string{ringing, answered, dialling, joined, ended, "ORIGINATOR_CANCEL"}},
		{"cancelled at once", "1003", "1002", accepted, []string{ended, "ORIGINATOR_CANCEL"}},
		{"cancelled while the owner's phone rings", "1003", "1002", origination.RingingUser,
			[]string{ringing, ended, "ORIGINATOR_CANCEL"}},
		{"cancelled between answer and dialling", "1001", "1003", origination.UserAnswered,
			[]string{ringing, answered, ended, "ORIGINATOR_CANCEL"}},
		{"cancelled while the destination rings", "1001", "1003", origination.Dialling,
			[]string{ringing, answered, dialling, ended, "ORIGINATOR_CANCEL"}},
		{"two phones of the owner ring, one answers", "1005", "9198", "",
			[]string{ringing, answered, dialling, joined, ended, "NORMAL_CLEARING"}},
		{"two phones of the owner ring, cancelled", "1006", "1002", origination.RingingUser,
			[]string{ringing, ended, "ORIGINATOR_CANCEL"}},
		{"two phones of the owner ring, none answers", "1006", "1002", "", []string{ringing, ended, "NO_ANSWER"}},
		{"owner does not answer", "1003", "1002", "", []string{ringing, ended, "NO_ANSWER"}},
		{"owner has no phone", "1004", "1002", "", []string{ended, "SUBSCRIBER_ABSENT"}},
		{"destination busy", "1001", "9901", "", []string{ringing, answered, dialling, ended, "USER_BUSY"}},
		{"destination rejects", "1001", "9902", "", []string{ringing, answered, dialling, ended, "CALL_REJECTED"}},
		{"destination does not answer", "1001", "1003", "", []string{ringing, answered, dialling, ended, "NO_ANSWER"}},
		{"destination has no phone", "1001", "1004", "",
			[]string{ringing, answered, dialling, ended, "SUBSCRIBER_ABSENT"}},
		{"destination is nowhere in the dialplan", "1001", "777", "",
			[]string{ringing, answered, dialling, ended, "NO_ROUTE_DESTINATION"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			d, probe, j := follow(t, cfg)
			o := realOrder(test.from, test.to)
			placed, err := d.Originate(t.Context(), o)
			if err != nil || placed.CallID != o.ID {
				t.Fatalf("%+v, %v", placed, err)
			}

			if test.cancel != "" {
				if test.cancel != accepted {
					j.Await(t, o.ID, test.cancel)
				}
				if err := d.Cancel(t.Context(), o.ID); err != nil {
					t.Fatal(err)
				}
			}

			j.Await(t, o.ID, origination.Ended)
			got := j.States(o.ID)
			if test.cancel != "" { // events in transit may arrive before the end
				got = slices.DeleteFunc(got, func(s string) bool { return !slices.Contains(test.want, s) })
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}

			probe.AwaitNoCalls(t)
			noChannels(t, d.platform, o)
		})
	}
}

// noChannels waits until the switch has no channel of the order.
func noChannels(t *testing.T, p *platform, o origination.Order) {
	t.Helper()
	session, err := p.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()

	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		rows, err := p.listChannels(t.Context(), session)
		if err != nil {
			t.Fatal(err)
		}

		left := slices.ContainsFunc(rows,
			func(r channelRow) bool { _, job, _ := readTag(r.Tag); return job == jobOf(o.ID) })
		if !left {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("channels are left: %v", rows)
		}
	}
}

// The next process takes over the calls of a process that ended, in any state.
func TestRealCallsOfAnEarlierProcess(t *testing.T) {
	cfg := realConfig(t)
	for _, test := range []struct {
		name, from, to string
		left           origination.State
		want           []string
	}{
		{"ringing the owner", "1003", "1002", origination.RingingUser, []string{ringing, ended, "ORIGINATOR_CANCEL"}},
		{"dialling", "1001", "9903", origination.Dialling, []string{answered, dialling, ended, "ORIGINATOR_CANCEL"}},
		{"in conversation", "1001", "1002", origination.Bridged,
			[]string{answered, dialling, joined, ended, "ORIGINATOR_CANCEL"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			first, probe := newDriver(t, cfg)
			j, stop := drivertest.Follow(t, first.Follow, nil)
			probe.AwaitConnected(t)
			o := realOrder(test.from, test.to)
			if _, err := first.Originate(t.Context(), o); err != nil {
				t.Fatal(err)
			}

			j.Await(t, o.ID, test.left)
			stop()
			if test.left == origination.Dialling {
				time.Sleep(200 * time.Millisecond) // let the table follow
			}

			second, probe := newDriver(t, cfg)
			j, _ = drivertest.Follow(t, second.Follow, []origination.OpenCall{
				{Order: o, CallID: o.ID, State: origination.Accepted, Since: time.Now()},
				{Order: o, CallID: "never-there", State: origination.Accepted, Since: time.Now()},
			})
			j.Await(t, o.ID, test.left)

			if err := second.Cancel(t.Context(), o.ID); err != nil {
				t.Fatal(err)
			}

			j.Await(t, o.ID, origination.Ended)
			j.Await(t, "never-there", origination.Ended)
			if got := j.States(o.ID); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
			if got := j.States("never-there"); !slices.Equal(got, []string{ended, "NORMAL_TEMPORARY_FAILURE"}) {
				t.Errorf("a call that is not there: %v", got)
			}

			probe.AwaitNoCalls(t)
			noChannels(t, second.platform, o)
		})
	}
}

// Many at once: the owners' legs are loopbacks too, so no phone is needed.
func TestRealManyCalls(t *testing.T) {
	cfg := realConfig(t)
	cfg.Owner = "loopback/9196/default/XML"
	d, probe, j := follow(t, cfg)
	const calls = 60
	orders := make([]origination.Order, calls)
	var all sync.WaitGroup

	for i := range orders {
		orders[i] = realOrder("1001", []string{"9196", "9198", "9901"}[i%3])
		all.Go(func() {
			if _, err := d.Originate(t.Context(), orders[i]); err != nil {
				t.Error(err)
				return
			}

			if i%3 == 0 {
				j.Await(t, orders[i].ID, origination.Bridged)
				if err := d.Cancel(t.Context(), orders[i].ID); err != nil {
					t.Error(err)
				}
			}
		})
	}

	all.Wait()
	for i, o := range orders {
		j.Await(t, o.ID, origination.Ended)
		got := j.States(o.ID)
		want := []string{"ORIGINATOR_CANCEL", "NORMAL_CLEARING", "USER_BUSY"}[i%3]
		if !drivertest.WellFormed(got) || got[len(got)-1] != want {
			t.Errorf("%s: got %v, want the end %s", o.Destination, got, want)
		}

		noChannels(t, d.platform, o)
	}

	probe.AwaitNoCalls(t)
}
