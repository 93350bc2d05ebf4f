package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/trunkline-bench/load"
)

// fleetBench holds the flags of fleet.
type fleetBench struct {
	p *cli.Program

	nodes, accounts, sockets, partitions, size int
	rate                                       float64
	warmup, duration                           time.Duration
	program, haproxy, redis                    string // paths
	asJSON                                     bool
}

// Limits of a run, all of whose processes share one machine.
const (
	maxFleetNodes   = 32
	maxFleetSockets = 20000
)

func fleetCommand(p *cli.Program) *cobra.Command {
	b := fleetBench{p: p}
	command := &cobra.Command{
		Use:   "fleet",
		Short: "Compare the CPU and traffic of several fanout nodes behind a balancer with those of one",
		Long: `Compare the CPU and traffic of several fanout nodes behind a balancer with those of one.

Each process listens on loopback and is ended at the end: a broker (the embedded
one, in a process of its own), Redis, a normalizer, HAProxy with the configuration
that compose runs, and the fanout nodes, first one, then --nodes of them. Each time
the same load is published, and the CPU and bytes of every process are reported,
per event and per delivery. Subscribers check every event: exit code 1 means that
events were lost, repeated or out of order.

It needs redis-server and haproxy, and in database.url an empty PostgreSQL database,
whose accounts it deletes again. Bytes are those of the processes' read and write
calls, the broker's log on disk included; what nodes and balancer send to subscribers
is what these received.`,
		Args: cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := b.validate(); err != nil {
				return err
			}
			return b.run(cmd.Context())
		},
	}

	flags := command.Flags()
	flags.IntVar(&b.nodes, "nodes", 4, "fanout nodes of the fleet")
	flags.IntVar(&b.accounts, "accounts", 200, "accounts")
	flags.IntVar(&b.sockets, "sockets", 10, "sockets of each account")
	flags.IntVar(&b.partitions, "partitions", 64, "partitions of the topics")
	flags.Float64Var(&b.rate, "rate", 2000, "events per second, all accounts together")
	flags.IntVar(&b.size, "size", 1024, "bytes of an event as it is published")
	flags.DurationVar(&b.warmup, "warmup", 3*time.Second, "duration of the load before the measurement")
	flags.DurationVar(&b.duration, "duration", 20*time.Second, "measure this long")
	flags.StringVar(&b.program, "trunkline", "",
		"path of trunkline; empty: in the directory of this program, else from PATH")
	flags.StringVar(&b.haproxy, "haproxy", "haproxy", "path of HAProxy, 2.6 or later")
	flags.StringVar(&b.redis, "redis-server", "redis-server", "path of Redis")
	flags.BoolVar(&b.asJSON, "json", false, "report as one JSON object")

	return cli.ShowSettings(command)
}

func (b *fleetBench) validate() error {
	switch minSize := load.MinEventSize(b.fanoutFlags("").longestAccount()); {
	case b.nodes < 1 || b.nodes > maxFleetNodes:
		return cli.Usagef("--nodes must be from 1 to %d, is %d", maxFleetNodes, b.nodes)
	case b.accounts < 1 || b.sockets < 1 || b.accounts*b.sockets > maxFleetSockets:
		return cli.Usagef("--accounts times --sockets must be from 1 to %d, is %d", maxFleetSockets,
			b.accounts*b.sockets)
	case b.partitions < 1 || b.partitions > 1024:
		return cli.Usagef("--partitions must be from 1 to 1024, is %d", b.partitions)
	case !(b.rate > 0 && b.rate <= maxRate):
		return cli.Usagef("--rate must be above 0 and at most %.0f, is %v", maxRate, b.rate)
	case b.size < minSize || b.size > maxEventBytes:
		return cli.Usagef("--size must be from %d to %d, is %d", minSize, maxEventBytes, b.size)
	case b.warmup < 0 || b.duration <= 0:
		return cli.Usagef("--warmup must not be below 0, and --duration must be above it")
	}

	s, err := b.p.Settings()
	if err != nil {
		return err
	}

	if s.Database.URL == "" {
		return cli.Usagef("database.url must name an empty PostgreSQL database, which the nodes share")
	}

	if b.program == "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}

		b.program = filepath.Join(filepath.Dir(self), "trunkline")
		_, err = os.Stat(b.program)
		if err != nil {
			b.program = "trunkline"
		}
	}

	for _, path := range []*string{&b.program, &b.haproxy, &b.redis} {
		found, err := exec.LookPath(*path)
		if err != nil {
			return cli.Usagef("%s is not installed", *path)
		}
		*path = found
	}

	return nil
}

// fanoutFlags returns the flags of the fanout scenario at a URL.
func (b *fleetBench) fanoutFlags(url string) *fanoutBench {
	return &fanoutBench{
		bench: bench{
			p: b.p, url: url, rate: b.rate, warmup: b.warmup, duration: b.duration,
			accounts: b.accounts, size: b.size, through: throughKafka,
		},
		subscribers: b.accounts * b.sockets, workers: max(runtime.NumCPU()/2, 1), resume: string(load.ResumeNever),
	}
}
