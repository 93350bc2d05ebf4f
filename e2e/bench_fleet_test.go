package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"testing"

	"trunkline/internal/testservice"
)

// TestFleetIsMeasured runs trunkline-bench fleet with little load: the report has figures for
// each process of both sides, every event arrives once, and no process remains.
func TestFleetIsMeasured(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"haproxy", "redis-server"} {
		if _, err := exec.LookPath(name); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatalf("%s is not installed", name)
			}
			t.Skipf("NOT TESTED: %s is not installed", name)
		}
	}

	program(t) // the tool looks for it in its own folder
	cmd := exec.Command(programNamed(t, "trunkline-bench"), "fleet", "--json", "--nodes", "2", "--accounts", "4",
		"--sockets", "2", "--partitions", "4", "--rate", "50", "--warmup", "0s", "--duration", "2s")
	cmd.Env = environment(map[string]string{"TRUNKLINE_DATABASE_URL": testservice.Postgres(t)})
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	c, err := startChild(cmd)
	if err != nil {
		t.Fatal(err)
	}

	<-c.exited
	if c.code != 0 {
		t.Fatalf("exit code %d: %s", c.code, errs.String())
	}

	type side struct {
		Nodes int
		Run   struct {
			Published, Deliveries        int
			Lost, Duplicated, Disordered int
			Connected                    int
		}
		Processes []struct {
			Name     string
			CPU      float64 `json:"cpu_seconds"`
			In       float64 `json:"bytes_in"`
			RSS      float64 `json:"rss_bytes"`
			Followed float64 `json:"partitions_followed"`
		}
		CPU    float64 `json:"all_cpu_us_per_delivery"`
		Stored float64 `json:"events_bytes_stored"`
		Read   float64 `json:"events_bytes_to_fanout"`
	}
	var report struct{ One, Fleet side }
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatalf("%v: %s", err, out.Bytes())
	}

	for want, s := range map[int]side{1: report.One, 2: report.Fleet} {
		if s.Nodes != want || s.Run.Connected != 8 || s.Run.Published == 0 || s.Run.Deliveries == 0 ||
			s.Run.Lost+s.Run.Duplicated+s.Run.Disordered != 0 {
			t.Errorf("%d nodes: %+v", want, s)
		}
		if s.CPU <= 0 || s.Stored <= 0 || s.Read <= 0 {
			t.Errorf("%d nodes: no CPU or no bytes: %+v", want, s)
		}

		names, followed := []string{}, 0.
		for _, p := range s.Processes {
			names = append(names, p.Name)
			followed += p.Followed
			if p.CPU < 0 || p.In <= 0 || p.RSS <= 0 {
				t.Errorf("%d nodes: %+v", want, p)
			}
		}

		all := []string{"redis", "broker", "normalizer", "node-1", "node-2"}[:3+want]
		if !slices.Equal(names, append(all, "balancer")) || followed == 0 {
			t.Errorf("%d nodes: processes %v, which follow %v partitions", want, names, followed)
		}
	}
}
