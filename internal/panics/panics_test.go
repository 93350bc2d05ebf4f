package panics_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"trunkline/internal/panics"
)

func TestAPanicIsCountedAndLoggedWithItsStack(t *testing.T) {
	reg, log := prometheus.NewRegistry(), bytes.Buffer{}
	logger := slog.New(slog.NewTextHandler(&log, nil))
	first := panics.New(reg, logger)
	second := panics.New(reg, logger) // another package of the same process
	first.InitMetrics("call", "message")

	if !first.Do("call", func() { panic("out of range") }) {
		t.Error("Do did not report the panic")
	}
	if second.Do("call", func() {}) {
		t.Error("Do reported a panic without one")
	}

	func() {
		defer second.Recover("message")
		var none []int
		_ = none[len(none)]
	}()

	for _, want := range []string{"level=ERROR", `msg="panic recovered"`, "where=call", "where=message",
		`panic="out of range"`, "panics_test.go"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s", want)
		}
	}

	want := `
# HELP trunkline_recovered_panics_total Panics recovered, by place; each ended one call, session or message.
# TYPE trunkline_recovered_panics_total counter
trunkline_recovered_panics_total{where="call"} 1
trunkline_recovered_panics_total{where="message"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "trunkline_recovered_panics_total"); err != nil {
		t.Error(err)
	}
}
