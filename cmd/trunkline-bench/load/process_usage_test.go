package load

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

func TestUsageOfProcesses(t *testing.T) {
	own, err := OwnUsage()
	// it works
	for began := time.Now(); err == nil && own.CPU < 40*time.Millisecond && time.Since(began) < time.Minute; {
		own, err = OwnUsage()
	}

	if err != nil || own.CPU < 40*time.Millisecond || own.RSS < 1<<20 {
		t.Errorf("own: %+v, %v", own, err)
	}

	same, err := ProcessUsage(os.Getpid())
	after, _ := OwnUsage()
	const rounding = 100 * time.Millisecond
	if err != nil || same.CPU < own.CPU-rounding || same.CPU > after.CPU+rounding || same.RSS < 1<<20 {
		t.Errorf("by pid: %+v, own %+v to %+v, %v", same, own, after, err)
	}

	if _, err := ProcessUsage(1 << 30); err == nil {
		t.Error("a process that is not there has usage")
	}
}

func TestCPUTicksWithAnyName(t *testing.T) {
	const rest = " S 1 1 1 0 -1 4194560 100 0 0 0 123 45 0 0 20 0 9 0 1 1 1"
	for _, name := range []string{"7 (x)", "7 (a) b (c d)", "7 ()) ( )"} {
		if ticks, err := cpuTicks([]byte(name + rest)); err != nil || ticks != 168 {
			t.Errorf("%s: %d, %v", name, ticks, err)
		}
	}

	for _, text := range []string{"", "7 (x) S 1", "7 (x)" + strings.Replace(rest, "123", "x", 1)} {
		if _, err := cpuTicks([]byte(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

func TestUsageFromMetrics(t *testing.T) {
	collections := 0
	text := "# HELP x y\nprocess_cpu_seconds_total 12.5\nprocess_resident_memory_bytes 2.5e+07\n" +
		"go_memstats_heap_inuse_bytes 100\ngo_memstats_stack_inuse_bytes 11\nother{a=\"b c\"} 1\n"
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.RequestURI() {
		case "/metrics":
			_, _ = w.Write([]byte(text))
		case "/debug/pprof/heap?gc=1":
			collections++
		default:
			http.NotFound(w, r)
		}
	}))
	defer web.Close()

	for _, base := range []string{"", "/", "/metrics"} {
		u, err := MetricsUsage(t.Context(), web.Client(), web.URL+base, base == "/")
		if want := (Usage{12500 * time.Millisecond, 25_000_000, 111}); err != nil || u != want {
			t.Errorf("%s: %+v, %v", base, u, err)
		}
	}

	if collections != 2 {
		t.Errorf("%d collections", collections)
	}

	for _, broken := range []string{"", "process_cpu_seconds_total x\n"} {
		text = broken
		if u, err := MetricsUsage(t.Context(), web.Client(), web.URL, false); err == nil {
			t.Errorf("%q is %+v", broken, u)
		}
	}

	if _, err := MetricsUsage(t.Context(), web.Client(), web.URL+"/away", false); err == nil ||
		!strings.Contains(err.Error(), "404") {
		t.Errorf("from nowhere: %v", err)
	}
}

func TestFileLimit(t *testing.T) {
	if err := RaiseFileLimit(10); err != nil {
		t.Error(err)
	}
	if err := RaiseFileLimit(1 << 62); err == nil || !strings.Contains(err.Error(), "ulimit -Hn 4611686018427387904") {
		t.Errorf("no limit at all: %v", err)
	}
}
