package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"trunkline/internal/loadtest"
)

// spareFiles is what a process needs open beside its sockets.
const spareFiles = 200

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.p.err, "trunkline: "+format+"\n", args...)
}

// benchRun is one run.
type benchRun struct {
	*bench
	load     *loadtest.Load
	source   *loadtest.Source
	observer observer
	report   benchReport
	atEnd    []func()
}

// run makes a run, and a report of it whatever has happened after the
// subscribers were there.
func (b *bench) run(ctx context.Context) error {
	if err := loadtest.RaiseFileLimit(uint64(b.subscribers) + spareFiles); err != nil {
		return err
	}
	r := &benchRun{bench: b}
	defer func() {
		for i := len(r.atEnd) - 1; i >= 0; i-- {
			r.atEnd[i]()
		}
	}()
	if err := r.prepare(ctx); err != nil {
		return err
	}
	err := r.measure(ctx)
	r.report.Interrupted = ctx.Err() != nil
	if b.asJSON {
		err = errors.Join(err, jsonLine(b.p.out, &r.report))
	} else {
		err = errors.Join(err, r.report.write(b.p.out))
	}
	if err == nil && !r.report.faultless() {
		return errFaults
	}
	return err
}

// prepare makes what the run needs: accounts, tokens, a way in for events.
func (r *benchRun) prepare(ctx context.Context) error {
	run := rand.Text()[:loadtest.RunLength]
	clock := loadtest.NewClock()
	client, err := r.client()
	if err != nil {
		return err
	}
	r.observer = observer{pids: r.pids, metrics: r.metrics, client: client}
	r.report = benchReport{Server: "trunkline", Subscribers: r.subscribers, Accounts: r.accounts, Rate: r.rate, EventBytes: r.size}
	accounts, sink, groups, err := r.parties(ctx, client, run)
	if err != nil {
		return err
	}
	tlsConfig, err := r.trust()
	if err != nil {
		return err
	}
	r.report.Transport = map[bool]string{true: "wss", false: "ws"}[strings.HasPrefix(r.url, "https:")]
	r.source, err = loadtest.NewSource(loadtest.SourceConfig{Run: run, Accounts: accounts, Size: r.size, Clock: clock}, sink)
	if err != nil {
		return err
	}
	r.load, err = loadtest.New(loadtest.Config{
		URL: r.url + channelPath + "/ws", Run: run, Groups: groups, TLS: tlsConfig, Clock: clock,
		Ramp: r.ramp, Workers: r.workers, Stalled: r.stalled, Resume: loadtest.Resume(r.resume),
	})
	return err
}

// parties are the accounts, where their events go in, and who subscribes.
func (r *benchRun) parties(ctx context.Context, client *http.Client, run string) (
	accounts []string, sink loadtest.Sink, groups []loadtest.Group, err error) {
	if r.floor != "" {
		process, err := r.startFloor()
		if err != nil {
			return nil, nil, nil, err
		}
		r.atEnd = append(r.atEnd, func() {
			if err := process.stop(); err != nil {
				r.say("the floor: %v", err)
			}
		})
		r.url, r.insecure, r.report.Server = process.url, true, "floor, "+r.floor
		r.observer = observer{pids: []int{process.command.Process.Pid}}
		return []string{floorAccount}, process, []loadtest.Group{{Sockets: r.subscribers, Streams: 1}}, nil
	}
	made, err := r.accountsFor(ctx, run)
	if err != nil {
		return nil, nil, nil, err
	}
	r.atEnd = append(r.atEnd, made.forget)
	if groups, err = r.groups(ctx, client, made); err != nil {
		return nil, nil, nil, err
	}
	sink, closeSink, err := r.sinkFor(ctx, client, made)
	if err != nil {
		return nil, nil, nil, err
	}
	r.atEnd = append(r.atEnd, closeSink)
	return made.ids, sink, groups, nil
}
