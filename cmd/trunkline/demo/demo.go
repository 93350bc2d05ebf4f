// Package demo has the command demo: demonstration traffic over the public ingest API.
package demo

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/identity"
)

// demo holds the flags of the demonstration.
type demo struct {
	p *cli.Program

	server *cli.ServerFlags
	url    string // of the server
	client *http.Client

	apiKey, account string
	rate            float64
	seed            uint64
	count           int
	wait            time.Duration
}

// Command returns the command demo.
func Command(p *cli.Program) *cobra.Command {
	d := demo{p: p}
	command := &cobra.Command{
		Use:   "demo",
		Short: "Send demonstration traffic to a running server until stopped",
		Long: `Send demonstration traffic to a running server until stopped: a small contact
center, posted to the public ingest like any other source's events.

The API key is ` + cli.EnvAPIKey + `, or --api-key; without one, a key is created in the
database of the settings, and deleted at the end.`,
		Args: cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if d.rate <= 0 || d.rate > 1000 {
				return cli.Usagef("--rate must be above 0 and at most 1000, is %v", d.rate)
			}
			if d.apiKey == "" {
				d.apiKey = p.Getenv(cli.EnvAPIKey)
			}

			return d.run(cmd.Context())
		},
	}

	flags := command.Flags()
	d.server = p.ServerFlags(flags)
	flags.StringVar(&d.account, "account", "demo", cli.AccountUsage+" whose contact center it is")
	flags.StringVar(&d.apiKey, "api-key", "", "key of the account; better "+cli.EnvAPIKey)
	flags.Float64Var(&d.rate, "rate", 3, "events per second")
	flags.Uint64Var(&d.seed, "seed", 1, "seed of the simulation")
	flags.IntVar(&d.count, "count", 0, "stop after this number of events; 0: no limit")
	flags.DurationVar(&d.wait, "wait", time.Minute, "how long to wait for the server")

	return command
}

func (d *demo) run(ctx context.Context) (err error) {
	d.url, err = d.server.URL()
	if err != nil {
		return err
	}

	up, err := d.awaitServer(ctx)
	if err != nil || !up {
		return err
	}
	defer d.client.CloseIdleConnections()

	account := d.account
	if d.apiKey == "" {
		deleteKey, err := d.createKey(ctx, &account)
		if err != nil {
			return err
		}
		defer deleteKey()
	}

	d.p.Printf("sending %v events/s for account %s to %s; stop with Ctrl-C", d.rate, account, d.url)
	d.p.Printf("see them with: trunkline listen --url %s --username alice --domain demo.local", d.url)
	d.p.Printf("its password is demo_password (TRUNKLINE_DEMO_PASSWORD) of the first start; put it in %s",
		cli.EnvPassword)
	sent, err := d.send(ctx, account)
	d.p.Printf("%d events sent", sent)

	return err
}

// createKey creates an API key in the server's database and replaces the account's name with its
// id. deleteKey deletes the key.
func (d *demo) createKey(ctx context.Context, account *string) (deleteKey func(), err error) {
	var made identity.APIKey
	err = d.p.WithDirectory(ctx, func(directory *identity.Directory) (err error) {
		d.apiKey, made, err = directory.CreateAPIKey(ctx, identity.NewAPIKey{
			Account: *account, Name: "trunkline demo", Scopes: []identity.Scope{identity.ScopeIngest},
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("creating an API key for account %s: %w", *account, err)
	}

	*account = made.AccountID
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()

		err := d.p.WithDirectory(ctx, func(directory *identity.Directory) error {
			return directory.DeleteAPIKey(ctx, made.ID, "")
		})
		if err != nil {
			d.p.Printf("deleting API key %s failed: %v", made.ID, err)
		}
	}, nil
}
