package main

import (
	"errors"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"trunkline/internal/loadtest"
)

func (p *program) benchCommand() *cobra.Command {
	command := group("bench", "Measure a running server", p.benchFanout())
	command.AddCommand(p.benchFloor()) // hidden: bench fanout --floor starts it
	return command
}

// bench is what bench fanout is told.
type bench struct {
	p *program

	url, ca  string
	insecure bool

	subscribers, accounts, workers int
	everyAccount                   bool
	rate, ramp                     float64
	size                           int
	warmup, duration, idle, climb  time.Duration
	stall                          string
	stalled                        float64 // of stall
	resume                         string

	through, apiKey  string
	username, domain string
	accountIDs       []string
	pids             []int
	metrics          []string
	floor            string
	asJSON           bool

	self func(args ...string) (*exec.Cmd, error) // this program, for a floor
}

// errFaults ends bench after a report of what was wrong.
var errFaults = errors.New("events were lost, repeated or out of order: see the report")

func (p *program) benchFanout() *cobra.Command {
	b := bench{p: p, self: ourselves}
	command := &cobra.Command{
		Use:   "fanout",
		Short: "Open many subscribers, publish at a rate, and report what it took",
		Long: `Open many subscribers, publish at a rate, and report what it took.

Subscribers check every event: exit code 1 means that events were lost, came
twice or out of order. Latency is from the time an event was due to the time a
subscriber has read it.

Without --username, accounts and a user are made in the database of the
settings, and deleted at the end. Events go to Kafka (that of the settings, or
of the server on --data-dir), or else to the public ingest.
Run it on the server's machine, or on one that has the same settings.

Sizing: --idle 10s tells memory and CPU of idle connections, --climb 200ms the
highest rate whose p99 stays below. Compare with --floor plain and --floor
coalesced, the least that any server costs here, in the same minute.`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := b.validate(); err != nil {
				return err
			}
			return b.run(cmd.Context())
		},
	}
	b.addFlags(command)
	return showSettings(command)
}

func (b *bench) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&b.url, "url", "", "the server; empty: the one of the settings, on this machine")
	flags.StringVar(&b.ca, "ca", "", "file with certificates to trust beside the system's, PEM")
	flags.BoolVar(&b.insecure, "insecure", false, "believe any server; for tests only")
	flags.IntVar(&b.subscribers, "subscribers", 1000, "sockets")
	flags.IntVar(&b.accounts, "accounts", 1, "accounts that events are of, in turn; a subscriber sees one of them")
	flags.BoolVar(&b.everyAccount, "every-account", false, "each subscriber sees all accounts")
	flags.Float64Var(&b.rate, "rate", 25, "events per second, all accounts together")
	flags.IntVar(&b.size, "size", 1024, "bytes of an event as it is published")
	flags.DurationVar(&b.warmup, "warmup", 2*time.Second, "publish this long before measuring")
	flags.DurationVar(&b.duration, "duration", 20*time.Second, "measure this long")
	flags.DurationVar(&b.idle, "idle", 0, "before publishing, measure idle connections this long")
	flags.DurationVar(&b.climb, "climb", 0, "from --rate, raise the rate until p99 is above this; each step takes --duration")
	flags.Float64Var(&b.ramp, "ramp", 0, "new connections per second; 0: as fast as it goes")
	flags.StringVar(&b.stall, "stall", "0%", "share of the subscribers that do not read")
	flags.StringVar(&b.resume, "resume", string(loadtest.Never), "how subscribers go on when the server closes: never, id or cursor")
	flags.IntVar(&b.workers, "workers", 0, "goroutines that read; 0: half the processors")
	flags.StringVar(&b.through, "through", "auto", "where events go in: kafka, http, or auto")
	flags.StringVar(&b.apiKey, "api-key", "", "with --username, key of the accounts, for http; better "+envAPIKey)
	flags.StringVar(&b.username, "username", "", "user who subscribes, with "+envPassword+"; empty: made")
	flags.StringVar(&b.domain, "domain", "", "domain of the user's account")
	flags.StringSliceVar(&b.accountIDs, "account", nil, "with --username, ids of the accounts that events are of")
	flags.IntSliceVar(&b.pids, "server-pid", nil, "processes of the server on this machine, to tell their CPU and memory")
	flags.StringSliceVar(&b.metrics, "metrics", nil, "metrics listeners of the server, such as http://127.0.0.1:9464, for the same")
	flags.BoolVar(&b.asJSON, "json", false, "report as one JSON object")
	flags.StringVar(&b.floor, "floor", "", "measure a floor in the server's place: plain or coalesced")
	_ = flags.MarkHidden("floor") // fails only for a name that is not there
}
