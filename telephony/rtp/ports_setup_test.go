package rtp_test

import (
	"io"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"trunkline/telephony/rtp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// newPorts makes a range on loopback.
func newPorts(t testing.TB, first, last uint16) *rtp.Ports {
	t.Helper()
	return newPortsCountedIn(t, first, last, prometheus.NewRegistry())
}

// newPortsCountedIn makes a range on loopback whose metrics are in reg.
func newPortsCountedIn(t testing.TB, first, last uint16, reg *prometheus.Registry) *rtp.Ports {
	t.Helper()
	ports, err := rtp.NewPorts(rtp.Config{Listen: loopback, MinPort: first, MaxPort: last}, reg,
		slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return ports
}

// awaitDropped waits until so many packets have been dropped for a reason.
func awaitDropped(t testing.TB, reg *prometheus.Registry, reason string, packets float64) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}

		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == "trunkline_rtp_packets_dropped_total" && m.GetLabel()[0].GetValue() == reason &&
					m.GetCounter().GetValue() == packets {
					return
				}
			}
		}

		if time.Now().After(deadline) {
			t.Fatalf("not %v packets were dropped as %s", packets, reason)
		}
	}
}

// patience limits the wait for a condition.
const patience = 3 * time.Minute
