package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// report is what trunkline-bench fanout --json prints, as far as it is used here, and what this
// program measures of a server at rest.
type report struct {
	Deliveries float64 `json:"deliveries"`
	Lost       float64 `json:"lost"`
	Duplicated float64 `json:"duplicated"`
	Disordered float64 `json:"disordered"`
	Latency    struct {
		P50 float64 `json:"p50"`
		P99 float64 `json:"p99"`
	} `json:"latency_ms"`
	Climb []struct {
		DeliveriesPerSecond float64 `json:"deliveries_per_second"`
		Latency             struct {
			P99 float64 `json:"p99"`
		} `json:"latency_ms"`
	} `json:"climb"`
	Usage struct {
		CPUSeconds         float64            `json:"cpu_seconds"`
		ByProcess          map[string]float64 `json:"cpu_seconds_by_process"`
		BytesPerConnection float64            `json:"rss_bytes_per_connection"`
		ConnectMicros      float64            `json:"cpu_us_per_handshake"`
	} `json:"server_usage"`

	ServerPID      string  `json:"-"` // "" of a floor
	RestCPUPercent float64 `json:"-"` // of one core, on average
	RestMB         float64 `json:"-"` // resident
}

// allMicros is the CPU of all processes for a delivery, in microseconds; serverMicros of one alone.
func (r report) allMicros() float64 { return r.Usage.CPUSeconds / r.Deliveries * 1e6 }

// serverMicros is the CPU of the process that has the subscribers; a floor is the only process.
func (r report) serverMicros() float64 {
	if r.ServerPID == "" {
		return r.allMicros()
	}
	return r.Usage.ByProcess[r.ServerPID] / r.Deliveries * 1e6
}

// heldRate is the highest rate of a climb whose p99 was at most 200 ms.
func (r report) heldRate() (best float64) {
	for _, step := range r.Climb {
		if step.Latency.P99 <= 200 {
			best = max(best, step.DeliveriesPerSecond)
		}
	}
	return best
}

// run runs a scenario once with a build.
func (m *machine) run(ctx context.Context, s scenario, build string) (r report, err error) {
	args := s.args
	if other, ok := s.otherArgs[build]; ok {
		args = other
	}

	if build == plain || build == coalesced {
		scheme := map[bool]string{true: "https", false: "http"}[s.secure]
		return m.runLoad(ctx, nil, args+" --floor "+build+" --url "+scheme+"://127.0.0.1")
	}

	servers := &servers{machine: m, secure: s.secure}
	defer func() { err = errors.Join(err, servers.stop()) }()

	if s.rest {
		return servers.atRest(ctx, build)
	}

	err = servers.start(ctx, s, build)
	if err != nil {
		return r, err
	}

	pids := servers.pids()
	if s.idle {
		time.Sleep(restUnmeasured)
		pids = pids[len(pids)-1:]
	}

	args += " --url " + servers.url + " --insecure --server-pid " + strings.Join(pids, ",")
	if build == centrifugo {
		args += " --peer centrifugo --peer-secret " + centrifugoSecret
	} else {
		args = nameAccounts(args) + " --username bench --domain root.test --through kafka"
	}

	r, err = m.runLoad(ctx, servers.loadEnvironment(), args)
	r.ServerPID = strconv.Itoa(servers.server.Process.Pid)
	return r, err
}

// nameAccounts replaces --accounts N by the ids of the first N accounts of the directory.
func nameAccounts(args string) string {
	words := strings.Fields(args)
	count, err := strconv.Atoi(words[1])
	if words[0] != "--accounts" || err != nil {
		panic("a scenario's arguments begin with --accounts N")
	}
	return "--account " + strings.Join(accountIDs()[:count], ",") + " " + strings.Join(words[2:], " ")
}

// runLoad runs the load. A climb whose first rate is too high begins again at half of it, twice at most.
func (m *machine) runLoad(ctx context.Context, environment []string, args string) (r report, err error) {
	for range 3 {
		r, err = m.runBench(ctx, environment, args)
		if err != nil || len(r.Climb) == 0 || r.heldRate() > 0 {
			return r, err
		}

		words := strings.Fields(args)
		at := slices.Index(words, "--rate") + 1
		rate, err := strconv.ParseFloat(words[at], 64)
		if err != nil {
			return r, err
		}

		words[at] = strconv.FormatFloat(rate/2, 'f', -1, 64)
		args = strings.Join(words, " ")
	}
	return r, nil
}

// benchTimeout ends a run of the load that does not end by itself.
const benchTimeout = 6 * time.Minute

// runBench runs trunkline-bench fanout and checks that nothing was lost, repeated or out of order.
func (m *machine) runBench(ctx context.Context, environment []string, args string) (r report, err error) {
	ctx, cancel := context.WithTimeout(ctx, benchTimeout)
	defer cancel()

	command := exec.CommandContext(ctx, m.benchProgram, append([]string{"fanout", "--json"}, strings.Fields(args)...)...)
	command.Env = append(os.Environ(), environment...)
	var out, messages bytes.Buffer
	command.Stdout, command.Stderr = &out, &messages

	runErr := command.Run()
	err = json.Unmarshal(out.Bytes(), &r)
	if err != nil {
		return r, fmt.Errorf("trunkline-bench: %w: %s", errors.Join(runErr, err), messages.String())
	}

	if r.Lost+r.Duplicated+r.Disordered != 0 {
		return r, fmt.Errorf("%.0f events were lost, %.0f repeated, %.0f out of order", r.Lost, r.Duplicated, r.Disordered)
	}

	// The first rate of a climb was too high: the caller sees a rate of 0.
	if runErr != nil && len(r.Climb) == 0 {
		return r, fmt.Errorf("trunkline-bench: %w: %s", runErr, messages.String())
	}

	return r, nil
}
