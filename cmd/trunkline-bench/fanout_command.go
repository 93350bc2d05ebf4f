package main

import (
	"errors"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/trunkline-bench/load"
)

// fanoutBench holds the flags of fanout.
type fanoutBench struct {
	bench

	subscribers, workers int
	everyAccount         bool
	ramp                 float64
	idle                 time.Duration
	stallShare           string
	stalledFraction      float64 // fraction of subscribers, --stall
	resume               string
	baseline             string // --floor: baselinePlain, baselineCoalesced, or "" for Trunkline
	peer, peerSecret     string // another product in place of Trunkline, "centrifugo", and the secret of its tokens

	selfCommand func(args ...string) (*exec.Cmd, error) // runs this program, for a baseline
}

// errFanoutFaults ends the command after the report has listed the faults.
var errFanoutFaults = errors.New("events were lost, repeated or out of order: see the report")

func fanoutCommand(p *cli.Program) *cobra.Command {
	b := fanoutBench{bench: bench{p: p}, selfCommand: newSelfCommand}
	command := &cobra.Command{
		Use:   "fanout",
		Short: "Open many subscribers, publish at a rate, and report latency, CPU and memory",
		Long: `Open many subscribers, publish at a rate, and report latency, CPU and memory.

Subscribers check every event: exit code 1 means that events were lost, came
twice or out of order. Latency is from the time an event was due to the time a
subscriber has read it.

Without --username, the run creates accounts and a user in the database of the
settings, and deletes them at the end. Events go to Kafka (that of the settings, or
of the server on --data-dir), or else to the public ingest.
Run it on the server's machine, or on one that has the same settings.
All connections are of one user and one address: the server needs
fanout.max_connections_per_user and fanout.max_connections_per_address at 0, and
for --metrics debug.pprof.

Sizing: --idle 10s measures memory and CPU of idle connections, --climb 200ms the
highest rate whose p99 stays below. Compare with --floor plain and --floor
coalesced, minimal servers that show the lower bound on this machine, in the
same minute.`,
		Args: cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := b.validate(); err != nil {
				return err
			}
			return b.run(cmd.Context())
		},
	}

	b.addFlags(command)
	return cli.ShowSettings(command)
}

func (b *fanoutBench) addFlags(command *cobra.Command) {
	flags := command.Flags()
	b.bench.addFlags(flags, 25, "events per second, all accounts together")
	b.addEventFlags(flags, 1, "number of accounts to publish events of, in turn; a subscriber receives one account's")
	flags.IntVar(&b.subscribers, "subscribers", 1000, "sockets")
	flags.BoolVar(&b.everyAccount, "every-account", false, "each subscriber sees all accounts")
	flags.DurationVar(&b.idle, "idle", 0, "before publishing, measure idle connections this long")
	flags.Float64Var(&b.ramp, "ramp", 0, "new connections per second; 0: as fast as possible")
	flags.StringVar(&b.stallShare, "stall", "0%", "share of the subscribers that do not read")
	flags.StringVar(&b.resume, "resume", string(load.ResumeNever),
		"how subscribers resume after a close by the server: never, id or cursor")
	flags.IntVar(&b.workers, "workers", 0, "goroutines that read; 0: half the processors")
	flags.StringVar(&b.through, "through", "auto", "how events are published: kafka, http, or auto")
	flags.StringVar(&b.baseline, "floor", "", "measure a minimal server instead of Trunkline: plain or coalesced")
	flags.StringVar(&b.peer, "peer", "", "measure another server instead of Trunkline: centrifugo")
	flags.StringVar(&b.peerSecret, "peer-secret", "", "with --peer, the key of its tokens (HS256)")
	for _, name := range []string{"floor", "peer", "peer-secret"} {
		_ = flags.MarkHidden(name) // fails only for an unknown name
	}
}
