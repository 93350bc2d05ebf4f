package pbx_test

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"trunkline/origination"
	"trunkline/telephony/sip"
)

// sipp runs sipp in a folder of its own.
func sipp(ctx context.Context, t *testing.T, arguments ...string) ([]byte, error) {
	t.Helper()
	run := exec.CommandContext(ctx, "sipp", append([]string{"-nostdin", "-timeout", "30"}, arguments...)...)
	run.Dir = t.TempDir()
	run.Env = append(os.Environ(), "TERM=dumb")
	output, err := run.CombinedOutput()

	logs, _ := filepath.Glob(filepath.Join(run.Dir, "*_errors.log"))
	for _, log := range logs {
		text, _ := os.ReadFile(log)
		output = append(output, text...)
	}

	return output, err
}

func TestHoldBySipp(t *testing.T) {
	if !inNetworkNamespace(t, "baresip", "sipp") {
		return
	}

	w := newTestEnvAt(t, "127.0.0.1:5060", []netip.Prefix{netip.MustParsePrefix("127.0.0.66/32")})
	startRegisteredBaresip(t, w, 5081, "1002", "auto", hzB, "pcmu", "udp")
	scenario, err := filepath.Abs("testdata/hold.xml")
	must(t, err)
	output, err := sipp(t.Context(), t, "-sf", scenario, "-i", "127.0.0.66", "-p", "5090", "-s", "1002", "-m", "1",
		"-trace_err", "127.0.0.1:5060")
	if err != nil {
		t.Errorf("sipp: %v\n%s", err, output[max(0, len(output)-4000):])
	}
}

func TestFloodBySipp(t *testing.T) {
	if !inNetworkNamespace(t, "baresip", "sipp") {
		return
	}

	w := newTestEnvAt(t, "127.0.0.1:5060", nil)
	a, b := startTwoBaresips(t, w, "auto")
	before := runtime.NumGoroutine()

	ctx, cancel := context.WithCancel(t.Context())
	flooded := make(chan struct{})
	go func() {
		defer close(flooded)
		// It ends with an error, because no response arrives.
		_, _ = sipp(ctx, t, "-sn", "uac", "-i", "127.0.0.66", "-p", "5090", "-r", "2000", "-m", "8000", "-l", "8000",
			"-timeout", "5", "127.0.0.1:5060")
	}()

	for w.flooded() < 1000 {
		time.Sleep(10 * time.Millisecond)
	}

	w.originate("1002")
	w.awaitState(origination.Bridged)
	if n := runtime.NumGoroutine(); n > before+300 {
		t.Errorf("%d goroutines in the flood, %d before", n, before)
	}

	a.command("hangup", "")
	b.wait("CALL_CLOSED")
	if p := w.awaitState(origination.Ended); p.Cause != string(sip.NormalClearing) {
		t.Errorf("the call ended with %s", p.Cause)
	}
	cancel()

	<-flooded
	t.Logf("dropped %d messages of the flood", w.flooded())
}

// flooded returns the number of dropped messages.
func (w *testEnv) flooded() (n int) {
	families, err := w.reg.Gather()
	must(w.t, err)
	for _, f := range families {
		if f.GetName() == "trunkline_sip_flood_dropped_total" {
			for _, m := range f.GetMetric() {
				n += int(m.GetCounter().GetValue())
			}
		}
	}

	return n
}
