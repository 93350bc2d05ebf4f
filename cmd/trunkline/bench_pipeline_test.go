package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// pipeline runs bench pipeline on the data directory.
func (w *world) pipeline(ctx context.Context, args ...string) (report pipelineReport, code int, errs string) {
	w.t.Helper()
	code, out, errs := w.runContext(ctx, append([]string{"bench", "pipeline", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &report); err != nil && out != "" {
		w.t.Fatalf("prints %q, says %s", out, errs)
	}
	return report, code, errs
}

func TestBenchPipelineOnTheWholeProgram(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve()
	r, code, errs := w.pipeline(t.Context(), "--accounts", "5", "--rate", "300", "--batch", "4", "--call-records", "40", "--reports",
		"--warmup", "200ms", "--duration", "1500ms", "--server-pid", fmt.Sprint(os.Getpid()), "--metrics", "http://"+s.MetricsListen)
	if code != exitOK || r.CallRecords == nil || r.Reports == nil || r.Usage == nil || r.Interrupted {
		t.Fatalf("exits with %d: %+v\n%s", code, r, errs)
	}
	if r.Events.Lost != 0 || r.Events.Sent < 200 || r.Events.WholeRun.Records < r.Events.Sent || r.Events.LatencyMS.P50 <= 0 || r.Events.AcknowledgedMS.P50 <= 0 {
		t.Errorf("events %+v", r.Events)
	}
	if len(r.Events.Partitions) < 2 || len(r.Events.Partitions) > 5 {
		t.Errorf("partitions %+v", r.Events.Partitions)
	}
	if r.CallRecords.Lost != 0 || r.CallRecords.WholeRun.Records < 20 || r.Reports.Found == 0 || r.Reports.NotFound != 0 || r.Reports.FoundMS.P50 <= 0 {
		t.Errorf("call records %+v, reports %+v", r.CallRecords, r.Reports)
	}
	if r.Usage.CPUSeconds <= 0 || r.Usage.RSSBytesEnd <= 0 || !strings.Contains(errs, "events/s in") {
		t.Errorf("usage %+v, says %s", r.Usage, errs)
	}
	r, code, errs = w.pipeline(t.Context(), "--accounts", "4", "--rate", "0", "--batch", "50", "--through", "kafka", "--warmup", "0", "--duration", "500ms")
	if code != exitOK || r.Events.WholeRun.Records < 1000 || r.Events.Lost != 0 {
		t.Errorf("as fast as it goes: exits with %d: %+v\n%s", code, r, errs)
	}
	var accounts []accountRow
	w.list(&accounts, "account", "list", "--json")
	for _, a := range accounts {
		if strings.HasPrefix(a.ID, "bench-") {
			t.Errorf("left is %+v", a)
		}
	}
}
