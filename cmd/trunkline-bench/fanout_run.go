package main

import (
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"trunkline/cmd/trunkline-bench/load"
	"trunkline/identity"
)

// spareFiles is the number of file descriptors reserved for everything but sockets.
const spareFiles = 200

// fanoutRun is the state of one run.
type fanoutRun struct {
	*fanoutBench
	load     *load.Load
	source   *load.Source
	observer observer
	report   fanoutReport
	cleanup  cleanups
}

// run executes a run. Once the subscribers are connected, it returns a report even after an
// error.
func (b *fanoutBench) run(ctx context.Context) error {
	if err := load.RaiseFileLimit(uint64(b.subscribers) + spareFiles); err != nil {
		return err
	}

	r := &fanoutRun{fanoutBench: b}
	defer r.cleanup.run()

	if err := r.prepare(ctx); err != nil {
		return unlessInterrupted(ctx, err)
	}

	err := r.measure(ctx)
	r.report.Interrupted = ctx.Err() != nil
	return b.printReport(&r.report, err)
}

// prepare creates the accounts, tokens and event sink of the run.
func (r *fanoutRun) prepare(ctx context.Context) error {
	runName := rand.Text()[:load.RunLength]
	clock := load.NewClock()
	client, err := r.client()
	if err != nil {
		return err
	}

	r.observer = observer{pids: r.pids, metrics: r.metrics, client: client}
	r.report = fanoutReport{Server: "trunkline", Subscribers: r.subscribers, Accounts: r.accounts, Rate: r.rate,
		EventBytes: r.size}
	accounts, sink, groups, err := r.openSubscribersAndSink(ctx, client, runName)
	if err != nil {
		return err
	}

	tlsConfig, err := r.tlsConfig()
	if err != nil {
		return err
	}

	r.report.Transport = map[bool]string{true: "wss", false: "ws"}[strings.HasPrefix(r.url, "https:")]

	r.source, err = load.NewSource(
		load.SourceConfig{Run: runName, Accounts: accounts, Size: r.size, Clock: clock}, sink)
	if err != nil {
		return err
	}

	path := channelPath + "/ws"
	if r.peer != "" {
		path = centrifugoPath
	}

	r.load, err = load.New(load.Config{
		URL: r.url + path, Run: runName, Groups: groups, TLS: tlsConfig, Clock: clock,
		Ramp: r.ramp, Workers: r.workers, Stalled: r.stalledFraction, Resume: load.Resume(r.resume),
	})

	return err
}

// openSubscribersAndSink returns the accounts, the sink of their events, and the subscribers.
func (r *fanoutRun) openSubscribersAndSink(ctx context.Context, client *http.Client, runName string) (
	accounts []string, sink load.Sink, groups []load.Group, err error) {
	if r.baseline != "" {
		process, err := r.startBaseline()
		if err != nil {
			return nil, nil, nil, err
		}

		r.cleanup.add(func() {
			if err := process.stop(); err != nil {
				r.printf("the baseline: %v", err)
			}
		})

		r.url, r.insecure, r.report.Server = process.url, true, "floor, "+r.baseline
		r.observer = observer{pids: []int{process.command.Process.Pid}}
		groups, err = r.splitSubscribers(r.accounts, func(i int) (string, error) { return strconv.Itoa(i), nil })

		return slices.Repeat([]string{baselineAccount}, r.accounts), process, groups, err
	}

	if r.peer != "" {
		return r.openCentrifugo(ctx)
	}

	made, err := r.openAccounts(ctx, runName, identity.RoleUser)
	if err != nil {
		return nil, nil, nil, err
	}

	r.cleanup.add(made.delete)

	groups, err = r.groups(ctx, client, made)
	if err != nil {
		return nil, nil, nil, err
	}

	sink, closeSink, err := r.newSink(ctx, client, made)
	if err != nil {
		return nil, nil, nil, err
	}

	r.cleanup.add(closeSink)
	return made.ids, sink, groups, nil
}
