package main

import (
	"errors"

	"github.com/spf13/cobra"

	"trunkline/internal/cli"
)

// apiBench is the flags of api.
type apiBench struct {
	bench

	mix                         string
	shares                      map[string]int // of mix
	connections, users, records int
}

// errRequestsFailed ends bench after a report of what was wrong.
var errRequestsFailed = errors.New("requests failed: see the report")

func benchAPI(p *cli.Program) *cobra.Command {
	b := apiBench{bench: bench{p: p}}
	command := &cobra.Command{
		Use:   "api",
		Short: "Ask the HTTP API at a rate or as fast as it answers, and report how it did",
		Long: `Ask the HTTP API at a rate or as fast as it answers, and report how it did.

--mix says what is asked, each with its share of the requests:
  login           the portal login, with a password
  token           who is connected to the events channel: little more than a check of the token
  encryption-get  an account's recording encryption
  encryption-put  the same, switched on again; its key stays
  call            click to call, on the simulator only; counted when accepted
  lookup          a call record by its origination id
  report          a page of 50 call records

At a --rate the loop is open: latency is from the time a request was due, so
what a slow answer holds up counts too. --rate 0 closes it: each of the
--connections asks again when it has its answer. Exit code 1 means that requests
failed. --climb 50ms tells the highest rate whose p99 stays below.

Without --username, accounts with an administrator, users who call and call
records are made, through the database of the settings and the public ingest;
accounts and users are deleted at the end. With --username, an administrator's,
nothing is made, and call and encryption-put are left out: they would ring
phones and change keys.`,
		Args: cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := b.validate(); err != nil {
				return err
			}
			return b.run(cmd.Context())
		},
	}
	flags := command.Flags()
	b.addFlags(flags, 0, "requests per second, all operations together; 0: as fast as they are answered")
	b.addAccountFlags(flags, 10, "accounts that are asked for, in turn")
	flags.StringVar(&b.mix, "mix", "", "what is asked, such as lookup or lookup=9,report=1; empty: "+defaultMix)
	flags.IntVar(&b.connections, "connections", 32, "connections, and requests under way at the same time")
	flags.IntVar(&b.users, "users", 0, "users who call in turn: one may place so many a minute; 0: as many as it takes")
	flags.IntVar(&b.records, "records", 1000, "call records that are made to be looked up")
	return cli.ShowSettings(command)
}
