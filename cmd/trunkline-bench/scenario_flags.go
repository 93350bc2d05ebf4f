package main

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"trunkline/cmd/internal/cli"
)

func commands(p *cli.Program) []*cobra.Command {
	// The last one is hidden: fanout --floor starts it.
	return []*cobra.Command{fanoutCommand(p), fleetCommand(p), pipelineCommand(p), baselineCommand(p)}
}

// bench holds the flags of all scenarios.
type bench struct {
	p *cli.Program

	url, ca  string
	insecure bool

	rate                    float64
	warmup, duration, climb time.Duration

	username, domain string

	// See addAccountFlags and addEventFlags.
	accounts, size int // size: bytes of an event
	through        string
	apiKey         string
	accountIDs     []string // of the server; none: the run creates accounts

	pids    []int
	metrics []string
	asJSON  bool
}

func (b *bench) printf(format string, args ...any) {
	b.p.Printf(format, args...)
}

// addFlags adds the flags of all scenarios; rate is the unit of --rate.
func (b *bench) addFlags(flags *pflag.FlagSet, rate float64, rateUsage string) {
	flags.StringVar(&b.url, "url", "", "URL of the server; empty: this machine, with the port in the settings")
	flags.StringVar(&b.ca, "ca", "", "file with certificates to trust in addition to the system's, PEM")
	flags.BoolVar(&b.insecure, "insecure", false, "accept any certificate; for tests only")
	flags.Float64Var(&b.rate, "rate", rate, rateUsage)
	flags.DurationVar(&b.warmup, "warmup", 2*time.Second, "duration of the load before the measurement")
	flags.DurationVar(&b.duration, "duration", 20*time.Second, "measure this long")
	flags.DurationVar(&b.climb, "climb", 0,
		"from --rate, raise the rate until p99 is above this; each step takes --duration")
	flags.StringVar(&b.username, "username", "", "user of the server, with "+cli.EnvPassword+"; empty: created")
	flags.StringVar(&b.domain, "domain", "", "with --username, domain of the user's account")
	flags.IntSliceVar(&b.pids, "server-pid", nil,
		"processes of the server on this machine, whose CPU and memory are reported")
	flags.StringSliceVar(&b.metrics, "metrics", nil,
		"metrics listeners of the server, such as http://127.0.0.1:9464, for the same")
	flags.BoolVar(&b.asJSON, "json", false, "report as one JSON object")
}

// addAccountFlags adds the flags that select the accounts and the user of the load.
func (b *bench) addAccountFlags(flags *pflag.FlagSet, accounts int, accountsUsage string) {
	flags.IntVar(&b.accounts, "accounts", accounts, accountsUsage)
	flags.StringSliceVar(&b.accountIDs, "account", nil, "with --username, ids of the accounts in place of --accounts")
}

// addEventFlags adds the flags of scenarios that publish events.
func (b *bench) addEventFlags(flags *pflag.FlagSet, accounts int, accountsUsage string) {
	b.addAccountFlags(flags, accounts, accountsUsage)
	flags.IntVar(&b.size, "size", 1024, "bytes of an event as it is published")
	flags.StringVar(&b.apiKey, "api-key", "", "with --username, key of the accounts, for http; better "+cli.EnvAPIKey)
}
