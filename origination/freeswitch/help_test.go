package freeswitch

import (
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"trunkline/origination"
	"trunkline/origination/drivertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newDriver(t *testing.T, cfg Config) *Driver {
	t.Helper()
	return driverWith(t, cfg, slog.New(slog.NewTextHandler(t.Output(), nil)))
}

func newLoggedDriver(t *testing.T, cfg Config) (*Driver, *drivertest.Log) {
	t.Helper()
	log := &drivertest.Log{}
	return driverWith(t, cfg, slog.New(slog.NewTextHandler(log, nil))), log
}

func driverWith(t *testing.T, cfg Config, log *slog.Logger) *Driver {
	t.Helper()
	d, err := New(cfg, Deps{Log: log, Metrics: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// follow runs Follow until stop, or the test's end, and waits for the first
// connection.
func follow(t *testing.T, d *Driver, open []origination.Open) (j *drivertest.Journal, stop func()) {
	t.Helper()
	j, stop = drivertest.Follow(t, d.Follow, open)
	connected(t, d)
	return j, stop
}

func connected(t *testing.T, d *Driver) {
	t.Helper()
	drivertest.Until(t, "the driver is connected", func() bool { return d.conn != nil }, &d.mu)
}

func noCalls(t *testing.T, d *Driver) {
	t.Helper()
	drivertest.Until(t, "no call is left", func() bool { return len(d.calls)+len(d.jobs) == 0 }, &d.mu)
}

func order(id string) origination.Order {
	return origination.Order{
		ID: id, InteractionID: "int-" + id, AccountID: "acc", Domain: "pbx.example", UserID: "u",
		Extension: "1001", Destination: "1002",
	}
}
