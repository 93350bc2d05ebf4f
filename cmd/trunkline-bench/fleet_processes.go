package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"trunkline/cmd/internal/cli"
	"trunkline/deploy/balancer"
	"trunkline/internal/retry"
)

// fleetProcess is one process of a run.
type fleetProcess struct {
	name          string
	stopsWithSide bool // ends with its fleetSide, not with the run
	cmd           *exec.Cmd
	node          balancer.Node // addresses of a Trunkline process
	logFile       string
	ended         chan struct{} // closed at its end
}

// fleetHost starts the processes of a run in a directory of its own.
type fleetHost struct {
	*fleetBench
	dir       string
	env       []string // of all Trunkline processes
	processes []*fleetProcess
}

const (
	startTimeout = 2 * time.Minute
	stopTimeout  = 20 * time.Second
)

// freeAddresses returns unused loopback addresses.
func freeAddresses(n int) ([]string, error) {
	var found []string
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("finding a free port: %w", err)
		}
		// All are held until the return, so that no address is found twice.
		defer listener.Close()
		found = append(found, listener.Addr().String())
	}

	return found, nil
}

// startShared starts the processes that both sides share: Redis, the broker and the normalizer.
func (h *fleetHost) startShared(ctx context.Context) error {
	s, err := h.p.Settings()
	if err != nil {
		return err
	}

	free, err := freeAddresses(2)
	if err != nil {
		return err
	}

	key := make([]byte, 32)
	_, err = rand.Read(key)
	if err != nil {
		return err
	}

	broker, redis := free[0], free[1]
	// Of the caller's own settings only the database is for these processes.
	h.env = slices.DeleteFunc(slices.Clone(h.p.Env),
		func(entry string) bool { return strings.HasPrefix(entry, "TRUNKLINE_") })
	h.env = append(h.env,
		"TRUNKLINE_DATABASE_URL="+string(s.Database.URL), "TRUNKLINE_REDIS_ADDRESS="+redis,
		"TRUNKLINE_MASTER_KEY="+hex.EncodeToString(key), "TRUNKLINE_TLS_MODE=off",
		"TRUNKLINE_KAFKA_PARTITIONS="+strconv.Itoa(h.partitions),
		"TRUNKLINE_FANOUT_MAX_CONNECTIONS_PER_USER=0", "TRUNKLINE_FANOUT_MAX_CONNECTIONS_PER_ADDRESS=0",
	)
	_, port, _ := net.SplitHostPort(redis)
	if err := h.start(&fleetProcess{name: "redis"}, h.env, h.redis, "--bind", "127.0.0.1", "--port", port, "--save", "",
		"--appendonly", "no", "--dir", h.dir); err != nil {
		return err
	}

	_, err = h.startNode(ctx, "broker", "api", false, "TRUNKLINE_KAFKA_EMBEDDED_LISTEN="+broker)
	if err != nil {
		return err
	}

	h.env = append(h.env, "TRUNKLINE_KAFKA_BROKERS="+broker)
	h.p.Env = append(slices.Clone(h.env), "TRUNKLINE_DATA_DIR="+h.dir) // of the load
	_, err = h.startNode(ctx, "normalizer", "normalizer", false)

	return err
}

// startNode starts a Trunkline process and waits until it is ready.
func (h *fleetHost) startNode(ctx context.Context, name, roles string, ofSide bool,
	settings ...string) (*fleetProcess, error) {
	free, err := freeAddresses(2)
	if err != nil {
		return nil, err
	}

	p := &fleetProcess{name: name, node: balancer.Node{Public: free[0], Metrics: free[1]}, stopsWithSide: ofSide}
	env := append(slices.Clone(h.env), settings...)
	env = append(env, "TRUNKLINE_ROLES="+roles, "TRUNKLINE_LISTEN="+free[0], "TRUNKLINE_METRICS_LISTEN="+free[1],
		"TRUNKLINE_DATA_DIR="+filepath.Join(h.dir, fmt.Sprintf("%s-%d", name, len(h.processes))),
		"TRUNKLINE_FANOUT_DRAIN_SPREAD=0s")
	if err := h.start(p, env, h.program, "serve"); err != nil {
		return nil, err
	}

	return p, h.awaitReady(ctx, p, "http://"+p.node.Metrics+"/readyz")
}

// startBalancer starts HAProxy in front of the nodes and returns its URL.
func (h *fleetHost) startBalancer(ctx context.Context, nodes []*fleetProcess) (string, error) {
	free, err := freeAddresses(1)
	if err != nil {
		return "", err
	}

	// Processes are in the order of startShared: the second is the broker, which has the role api.
	fleet := balancer.LocalFleet{Listen: free[0], Core: h.processes[1].node}
	for _, n := range nodes {
		fleet.Fanout = append(fleet.Fanout, n.node)
	}

	config, err := fleet.HAProxy()
	if err != nil {
		return "", err
	}

	file := filepath.Join(h.dir, "haproxy.cfg")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return "", err
	}

	p, url := &fleetProcess{name: "balancer", stopsWithSide: true}, "http://"+free[0]
	if err := h.start(p, h.env, h.haproxy, "-f", file); err != nil {
		return "", err
	}

	return url, h.awaitReady(ctx, p, url+channelPath+"/health")
}

// start starts a process. The kernel ends it when the thread that forked it ends, so one
// goroutine stays locked to that thread.
func (h *fleetHost) start(p *fleetProcess, env []string, path string, args ...string) error {
	p.logFile = filepath.Join(h.dir, fmt.Sprintf("%s-%d.log", p.name, len(h.processes)))
	log, err := os.Create(p.logFile)
	if err != nil {
		return err
	}
	defer log.Close()

	p.cmd = exec.Command(path, args...)
	p.cmd.Env, p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = env, h.dir, log, log
	// In a group of its own, Ctrl-C does not reach it: this program stops all in their order.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}

	p.ended = make(chan struct{})
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()

		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // its end is what counts
			close(p.ended)
		}
	}()

	if err := <-started; err != nil {
		return fmt.Errorf("starting %s: %w", p.name, err)
	}

	h.processes = append(h.processes, p)
	return nil
}

// awaitReady waits until a URL of a process answers 200.
func (h *fleetHost) awaitReady(ctx context.Context, p *fleetProcess, url string) error {
	client := &http.Client{Timeout: 5 * time.Second}
	for began := time.Now(); ; {
		err := h.get(ctx, client, url)
		if err == nil {
			return nil
		}

		select {
		case <-p.ended:
			return fmt.Errorf("%s has ended: %s", p.name, p.lastLines())
		default:
		}

		if time.Since(began) > startTimeout || !retry.Sleep(ctx, 100*time.Millisecond) {
			return fmt.Errorf("%s is not ready: %w: %s", p.name, err, p.lastLines())
		}
	}
}

func (h *fleetHost) get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	_, err = cli.Fetch(client, request, http.StatusOK)
	return err
}

// lastLines returns the end of the process's log.
func (p *fleetProcess) lastLines() string {
	text, err := os.ReadFile(p.logFile)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2<<10):])
}

// stop ends the processes, those of a side or all, the last started first.
func (h *fleetHost) stop(all bool) error {
	var errs []error
	kept := h.processes[:0:0]
	for _, p := range slices.Backward(h.processes) {
		if !all && !p.stopsWithSide {
			kept = append(kept, p)
			continue
		}

		_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-p.ended:
		case <-time.After(stopTimeout):
			errs = append(errs, fmt.Errorf("%s did not end within %s and was killed", p.name, stopTimeout))
			_ = p.cmd.Process.Kill()
			<-p.ended
		}
	}

	slices.Reverse(kept)
	h.processes = kept
	return errors.Join(errs...)
}
