package webhook

import (
	"github.com/spf13/pflag"

	"trunkline/cmd/internal/cli"
	"trunkline/identity"
)

// configFlags are the flags of a webhook's configuration, except the URL.
type configFlags struct {
	values    config
	fromStdin bool
}

type filterFlag struct {
	name, usage string
	values      *[]string
}

func filterFlags(f *identity.Filter) []filterFlag {
	return []filterFlag{
		{"only-account", "only events of these accounts", &f.AccountIDs},
		{"type", "only events of these types", &f.EventTypes},
		{"queue", "only events about these queues", &f.QueueIDs},
		{"agent", "only events about these agents", &f.AgentIDs},
		{"call", "only events about these calls", &f.CallIDs},
		{"name", "only events with these names in their facts, such as agent.login or call.*", &f.Names},
	}
}

func (f *configFlags) register(flags *pflag.FlagSet) {
	for _, flag := range filterFlags(&f.values.Filters) {
		flags.StringSliceVar(flag.values, flag.name, nil, flag.usage)
	}
	flags.StringVar(&f.values.Format, "format", "", "trunkline (default) or cloudevents")
	flags.BoolVar(&f.fromStdin, "secret-stdin", false, "read the signing secret from the first line of stdin")
}

// apply copies the given flags to c.
func (f *configFlags) apply(p *cli.Program, flags *pflag.FlagSet, c *config) (err error) {
	given := filterFlags(&f.values.Filters)
	for i, flag := range filterFlags(&c.Filters) {
		if flags.Changed(flag.name) {
			*flag.values = *given[i].values
		}
	}

	if f.values.Format != "" {
		c.Format = f.values.Format
	}
	if f.fromStdin {
		c.Secret, err = cli.ReadSecret(p.In, "secret")
	}

	return err
}
