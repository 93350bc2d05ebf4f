package main

import (
	"errors"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
)

// apiBench holds the flags of api.
type apiBench struct {
	bench

	mix                         string
	weights                     map[string]int // parsed --mix
	connections, users, records int
}

// errRequestsFailed ends the command after the report has listed the failures.
var errRequestsFailed = errors.New("requests failed: see the report")

func apiCommand(p *cli.Program) *cobra.Command {
	b := apiBench{bench: bench{p: p}}
	command := &cobra.Command{
		Use:   "api",
		Short: "Send requests to the HTTP API at a fixed rate or as fast as it responds, and report latency and errors",
		Long: `Send requests to the HTTP API at a fixed rate or as fast as it responds, and report latency and errors.

--mix selects the operations and their shares of the requests:
  login           the portal login, with a password
  token           list the connections to the events channel: mostly a token check
  encryption-get  an account's recording encryption
  encryption-put  enable it again; the key does not change
  call            click to call, on the simulator only; counted when accepted
  lookup          a call record by its origination id
  report          a page of 50 call records

With a --rate the load is open-loop: latency is measured from the time a request
was due, so it includes delays behind slow responses. With --rate 0 it is
closed-loop: each of the --connections sends its next request after a response.
Exit code 1 means that requests failed. --climb 50ms finds the highest rate with a
p99 below 50 ms.

Without --username, the run creates accounts, an administrator, users and call
records through the database of the settings and the public ingest, and deletes
the accounts and users at the end. With the --username of an administrator it
creates nothing and omits call and encryption-put, which would ring phones and
change keys.`,
		Args: cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := b.validate(); err != nil {
				return err
			}
			return b.run(cmd.Context())
		},
	}
	flags := command.Flags()
	b.addFlags(flags, 0, "requests per second, all operations together; 0: as fast as the server responds")
	b.addAccountFlags(flags, 10, "number of accounts to use in turn")
	flags.StringVar(&b.mix, "mix", "",
		"operations and their weights, such as lookup or lookup=9,report=1; empty: "+defaultMix)
	flags.IntVar(&b.connections, "connections", 32, "connections, which is the number of concurrent requests")
	flags.IntVar(&b.users, "users", 0,
		"users that place the calls in turn, as each has a limit per minute; 0: as many as the rate needs")
	flags.IntVar(&b.records, "records", 1000, "number of call records to create for the lookups")
	return cli.ShowSettings(command)
}
