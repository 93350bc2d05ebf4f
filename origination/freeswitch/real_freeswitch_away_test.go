package freeswitch

import (
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"trunkline/origination"
	"trunkline/origination/drivertest"
)

// cable is a connection to the switch that can be unplugged.
type cable struct {
	net.Listener
	to string

	mu        sync.Mutex
	unplugged bool
	conns     []net.Conn
	done      sync.WaitGroup
}

func newCable(t *testing.T, to string) *cable {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{Listener: l, to: to}
	c.done.Go(c.run)
	t.Cleanup(func() { l.Close(); c.setPlugged(false); c.done.Wait() })
	return c
}

func (c *cable) run() {
	for {
		near, err := c.Accept()
		if err != nil {
			return
		}

		far, err := net.Dial("tcp", c.to)
		c.mu.Lock()
		if err != nil || c.unplugged {
			near.Close()
			if err == nil {
				far.Close()
			}
			c.mu.Unlock()
			continue
		}

		c.conns = append(c.conns, near, far)
		c.mu.Unlock()

		c.done.Go(func() { io.Copy(far, near); far.Close() })
		c.done.Go(func() { io.Copy(near, far); near.Close() })
	}
}

func (c *cable) setPlugged(in bool) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.unplugged = !in
	if in {
		return
	}

	for _, nc := range c.conns {
		nc.Close()
	}

	c.conns = nil
}

func TestRealConnectionAway(t *testing.T) {
	cfg := realConfig(t)
	wire := newCable(t, cfg.Address)
	cfg.Address = wire.Addr().String()
	cfg.ReconnectMax = 300 * time.Millisecond
	d, probe, j := follow(t, cfg)

	ends, stays, cancelled, rings := realOrder("1001", "9198"), realOrder("1002", "9196"), realOrder("1002",
		"9196"), realOrder("1001", "1003")
	for _, o := range []origination.Order{ends, stays, cancelled} {
		if _, err := d.Originate(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		j.Await(t, o.ID, origination.Bridged)
	}

	if _, err := d.Originate(t.Context(), rings); err != nil {
		t.Fatal(err)
	}

	wire.setPlugged(false)
	drivertest.Until(t, "the driver notices", func() bool { return probe.Metric(t, "connected") == 0 })
	if err := d.Cancel(t.Context(), cancelled.ID); err != nil {
		t.Fatal(err)
	}

	time.Sleep(1500 * time.Millisecond) // ends ends meanwhile: its dialplan hangs up after a second
	wire.setPlugged(true)
	for _, test := range []struct {
		order origination.Order
		state origination.State
		want  []string
	}{
		{ends, origination.Ended, []string{ringing, answered, dialling, joined, ended, "NORMAL_TEMPORARY_FAILURE"}},
		{cancelled, origination.Ended, []string{ringing, answered, dialling, joined, ended, "ORIGINATOR_CANCEL"}},
		{stays, origination.Bridged, []string{ringing, answered, dialling, joined}},
		{rings, origination.Ended, []string{answered, dialling, ended, "NO_ANSWER"}},
	} {
		j.Await(t, test.order.ID, test.state)
		got := slices.DeleteFunc(j.States(test.order.ID),
			func(s string) bool { return s == ringing && test.want[0] != ringing })
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", test.order.Destination, got, test.want)
		}
	}

	if err := d.Cancel(t.Context(), stays.ID); err != nil {
		t.Fatal(err)
	}

	j.Await(t, stays.ID, origination.Ended)
	probe.AwaitNoCalls(t)
}

// FREESWITCH_RESTART is a command that kills the switch and starts it again.
func TestRealRestart(t *testing.T) {
	cfg := realConfig(t)
	restart := os.Getenv("FREESWITCH_RESTART")
	if restart == "" {
		t.Skip("FREESWITCH_RESTART is not set")
	}

	d, probe, j := follow(t, cfg)
	o := realOrder("1001", "9196")
	if _, err := d.Originate(t.Context(), o); err != nil {
		t.Fatal(err)
	}

	j.Await(t, o.ID, origination.Bridged)
	if out, err := exec.CommandContext(t.Context(), restart).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	j.Await(t, o.ID, origination.Ended)
	if got := j.States(o.ID); got[len(got)-1] != "NORMAL_TEMPORARY_FAILURE" {
		t.Errorf("got %v", got)
	}

	probe.AwaitNoCalls(t)
}
