package load

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

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
