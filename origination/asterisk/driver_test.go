package asterisk

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"trunkline/origination"
	"trunkline/origination/drivertest"
	"trunkline/origination/eventdriver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newDriver(t *testing.T, cfg Config) (*Driver, *drivertest.Probe) {
	t.Helper()
	deps, probe := drivertest.NewProbe(t, "asterisk")
	d, err := New(cfg, deps)
	if err != nil {
		t.Fatal(err)
	}
	return d, probe
}

func order(id string) origination.Order { return drivertest.OrderTo(id, "1002") }

func TestDriver(t *testing.T) {
	suite := drivertest.Suite{
		StartPlatform: func(t *testing.T,
			p *drivertest.ScriptedPlatform) func(eventdriver.Limits, bool) (drivertest.Driver, *drivertest.Probe) {
			s := newScripted(t, &scriptedAsterisk{ScriptedPlatform: p})
			return func(limits eventdriver.Limits, denied bool) (drivertest.Driver, *drivertest.Probe) {
				cfg := s.driverConfig()
				cfg.Limits = limits
				if denied {
					cfg.Secret = drivertest.WrongPassword
				}
				return newDriver(t, cfg)
			}
		},
		Calls: make(map[string][]string), Talk: "2001", Busy: "2004",
		Before: []string{"Newchannel"},
		Events: []string{"Newchannel", "Newstate", "DialState", "OriginateResponse", "DialBegin", "BridgeEnter",
			"Hangup"},
		Answer: "OriginateResponse", HangUp: "Hangup",
	}

	for number, c := range scriptedCalls(t) {
		suite.Calls[number] = c.want
	}

	suite.Run(t)
}

func TestCallsInAnyTiming(t *testing.T) {
	for _, timing := range []struct {
		name  string
		split bool
		pause time.Duration
	}{{name: "at once"}, {name: "a few bytes at a time", split: true}, {name: "slowly", pause: time.Millisecond}} {
		for _, noFilter := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, without a filter %t", timing.name, noFilter), func(t *testing.T) {
				t.Parallel()
				s := newScripted(t,
					&scriptedAsterisk{noFilter: noFilter,
						ScriptedPlatform: &drivertest.ScriptedPlatform{Split: timing.split, Pause: timing.pause}})
				cfg := s.driverConfig()
				cfg.GoneAfter = time.Minute // the end must be found by events alone
				d, probe := newDriver(t, cfg)
				j, _ := drivertest.Follow(t, d.Follow, nil)
				probe.AwaitConnected(t)

				for number := range scriptedCalls(t) {
					if _, err := d.Originate(t.Context(), drivertest.OrderTo("call-"+number, number)); err != nil {
						t.Fatal(err)
					}
				}

				for number, c := range scriptedCalls(t) {
					j.Await(t, "call-"+number, origination.Ended)
					if got := j.States("call-" + number); !slices.Equal(got, c.want) {
						t.Errorf("%s: got %v, want %v", number, got, c.want)
					}
				}

				probe.AwaitNoCalls(t)
			})
		}
	}
}

// The log says which privilege a user lacks that may not originate calls, or not list channels.
func TestAdviceAboutPrivileges(t *testing.T) {
	for name, s := range map[string]*scriptedAsterisk{
		"originate": {ScriptedPlatform: &drivertest.ScriptedPlatform{Refuse: "Permission denied"}},
		"reporting": {noList: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScripted(t, s)
			s.scripts["1002"] = nil // taken between the connection and its first list
			d, probe := newDriver(t, s.driverConfig())
			drivertest.Follow(t, d.Follow, nil)

			drivertest.Until(t, "the log says why", func() bool {
				_, _ = d.Originate(t.Context(), order("c")) // is refused
				return strings.Contains(probe.Log.String(), "write = originate,call,reporting")
			})
		})
	}
}
