package rtp_test

import (
	"io"
	"log/slog"
	"net/netip"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"trunkline/telephony/rtp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// newPorts makes a range on loopback.
func newPorts(t testing.TB, first, last uint16) *rtp.Ports {
	t.Helper()
	ports, err := rtp.NewPorts(rtp.Config{Listen: loopback, Min: first, Max: last}, prometheus.NewRegistry(), slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return ports
}
