package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"trunkline/internal/loadtest"
)

func (p *program) benchCommand() *cobra.Command {
	command := group("bench", "Measure a running server", p.benchFanout(), p.benchPipeline(), p.benchAPI())
	command.AddCommand(p.benchFloor()) // hidden: bench fanout --floor starts it
	return command
}

// bench is what every scenario is told.
type bench struct {
	p *program

	url, ca  string
	insecure bool

	rate                    float64
	warmup, duration, climb time.Duration

	username, domain string

	// See addAccountFlags and addEventFlags.
	accounts, size int
	through        string
	apiKey         string
	accountIDs     []string

	pids    []int
	metrics []string
	asJSON  bool
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.p.err, "trunkline: "+format+"\n", args...)
}

// addFlags adds the flags that all scenarios have; rate says what --rate counts.
func (b *bench) addFlags(flags *pflag.FlagSet, rate float64, rateUsage string) {
	flags.StringVar(&b.url, "url", "", "the server; empty: the one of the settings, on this machine")
	flags.StringVar(&b.ca, "ca", "", "file with certificates to trust beside the system's, PEM")
	flags.BoolVar(&b.insecure, "insecure", false, "believe any server; for tests only")
	flags.Float64Var(&b.rate, "rate", rate, rateUsage)
	flags.DurationVar(&b.warmup, "warmup", 2*time.Second, "load this long before measuring")
	flags.DurationVar(&b.duration, "duration", 20*time.Second, "measure this long")
	flags.DurationVar(&b.climb, "climb", 0, "from --rate, raise the rate until p99 is above this; each step takes --duration")
	flags.StringVar(&b.username, "username", "", "user of the server, with "+envPassword+"; empty: made")
	flags.StringVar(&b.domain, "domain", "", "with --username, domain of the user's account")
	flags.IntSliceVar(&b.pids, "server-pid", nil, "processes of the server on this machine, to tell their CPU and memory")
	flags.StringSliceVar(&b.metrics, "metrics", nil, "metrics listeners of the server, such as http://127.0.0.1:9464, for the same")
	flags.BoolVar(&b.asJSON, "json", false, "report as one JSON object")
}

// addAccountFlags adds the flags that say whose the load is.
func (b *bench) addAccountFlags(flags *pflag.FlagSet, accounts int, accountsUsage string) {
	flags.IntVar(&b.accounts, "accounts", accounts, accountsUsage)
	flags.StringSliceVar(&b.accountIDs, "account", nil, "with --username, ids of the accounts in place of --accounts")
}

// addEventFlags adds those of scenarios that publish.
func (b *bench) addEventFlags(flags *pflag.FlagSet, accounts int, accountsUsage string) {
	b.addAccountFlags(flags, accounts, accountsUsage)
	flags.IntVar(&b.size, "size", 1024, "bytes of an event as it is published")
	flags.StringVar(&b.apiKey, "api-key", "", "with --username, key of the accounts, for http; better "+envAPIKey)
}

// maxRate is the highest rate that may be asked for, a second.
const maxRate = 1e6

// validateShared is about the flags of addFlags, and settles the URL. unpaced
// says that --rate 0 means as fast as it goes.
func (b *bench) validateShared(unpaced bool) error {
	switch {
	case b.rate < 0 || b.rate == 0 && !unpaced || !(b.rate <= maxRate):
		least := map[bool]string{true: "at least", false: "above"}[unpaced]
		return usagef("--rate must be %s 0 and at most %.0f, is %v", least, maxRate, b.rate)
	case b.duration <= 0:
		return usagef("--duration must be above 0, is %v", b.duration)
	case b.warmup < 0:
		return usagef("--warmup must not be below 0, is %v", b.warmup)
	case b.climb < 0:
		return usagef("--climb must not be below 0, is %v", b.climb)
	case b.climb > 0 && b.rate == 0:
		return usagef("--climb needs a --rate to begin with")
	}
	for _, pid := range b.pids {
		if pid < 1 {
			return usagef("--server-pid is the number of a process, not %d", pid)
		}
	}
	for _, base := range b.metrics {
		if u, err := url.Parse(base); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return usagef("--metrics is such as http://127.0.0.1:9464, not %q", base)
		}
	}
	return b.wholeURL()
}

// maxEventBytes is the size of the longest record there is.
const maxEventBytes = 1 << 20

// validateAccounts is about the flags of addAccountFlags.
func (b *bench) validateAccounts() error {
	if len(b.accountIDs) > 0 {
		b.accounts = len(b.accountIDs)
	}
	switch {
	case b.username != "" && (b.domain == "" || len(b.accountIDs) == 0):
		return usagef("--username needs --domain and --account")
	case b.username == "" && (len(b.accountIDs) > 0 || b.apiKey != ""):
		return usagef("--account and --api-key need --username")
	case b.accounts < 1 || b.accounts > loadtest.MaxStreams:
		return usagef("--accounts must be from 1 to %d, is %d", loadtest.MaxStreams, b.accounts)
	}
	return nil
}

// validateEvents is about the flags of addEventFlags.
func (b *bench) validateEvents() error {
	if err := b.validateAccounts(); err != nil {
		return err
	}
	switch least := loadtest.MinEventSize(b.longestAccount()); {
	case b.size > maxEventBytes:
		return usagef("--size must be at most %d, is %d", maxEventBytes, b.size)
	case b.size < least:
		return usagef("--size must be at least %d, is %d", least, b.size)
	}
	return nil
}

// wholeURL settles the server's URL.
func (b *bench) wholeURL() error {
	s, err := b.p.settings()
	if err != nil {
		return err
	}
	if b.url == "" {
		b.url = serverURL(s)
	}
	b.url = strings.TrimRight(b.url, "/")
	u, err := url.Parse(b.url)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
		return usagef("--url must be https://host:port, without a user")
	}
	return nil
}

// findings are what a run reports.
type findings interface {
	write(w io.Writer) error // for people
	fault() error            // what was wrong with the server, nil when nothing was
}

// tell prints a report, whatever has happened. err is what ended the run.
func (b *bench) tell(r findings, err error) error {
	if b.asJSON {
		err = errors.Join(err, jsonLine(b.p.out, r))
	} else {
		err = errors.Join(err, r.write(b.p.out))
	}
	if err == nil {
		err = r.fault()
	}
	return err
}

// unlessInterrupted is why a run was not begun.
func unlessInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("interrupted before anything was measured")
	}
	return err
}

// endings are what a run has to undo, last first.
type endings []func()

func (e *endings) add(end func()) { *e = append(*e, end) }

func (e *endings) run() {
	for i := len(*e) - 1; i >= 0; i-- {
		(*e)[i]()
	}
}

// runUntil runs work until the function it returns is called, which gives its
// error.
func runUntil(ctx context.Context, work func(context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- work(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}
}

// everySecond calls tell once a second, with the time since it began and since
// the last call, until the function it returns is called.
func everySecond(tell func(elapsed, since time.Duration)) (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		began := time.Now()
		last := began
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				now := time.Now()
				tell(now.Sub(began), now.Sub(last))
				last = now
			}
		}
	})
	return func() {
		close(done)
		running.Wait()
	}
}
