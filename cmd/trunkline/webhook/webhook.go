// Package webhook has the commands on webhooks. They call a server's REST API as the user of
// trunkline login, because only servers have the positions in Kafka at which deliveries begin and
// resume.
package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/trunkline/savedlogin"
	"trunkline/event"
)

// Command returns the command webhook.
func Command(p *cli.Program) *cobra.Command {
	return cli.Group("webhook", "The webhooks of an account", create(p), list(p), show(p), update(p), remove(p),
		retry(p))
}

const webhooksPath = "/api/v2/webhooks"

func webhookPath(id string) string { return webhooksPath + "/" + url.PathEscape(id) }

func create(p *cli.Program) *cobra.Command {
	var f configFlags
	var asJSON bool
	c := savedlogin.WithAccount(p, &cobra.Command{
		Use:   "create URL",
		Short: "Create a webhook and print its id; without --secret-stdin a secret is generated and printed on stderr",
		Example: `  trunkline webhook create https://crm.example.com/trunkline --queue sales --name 'queue.*'
  trunkline webhook create https://crm.example.com/trunkline --format cloudevents --json`,
		Args: cli.ExactArgs("URL"),
	}, func(cmd *cobra.Command, s *savedlogin.Session, args []string) error {
		created := config{URL: args[0]}
		if err := f.apply(p, cmd.Flags(), &created); err != nil {
			return err
		}

		_, answer, err := s.Do(cmd.Context(),
			savedlogin.Request{Method: http.MethodPost, Path: webhooksPath, Body: created,
				WantStatus: http.StatusCreated})
		if err != nil {
			return fmt.Errorf("creating a webhook: %w", err)
		}

		if asJSON {
			return cli.JSONLine(p.Out, json.RawMessage(answer))
		}

		h, err := decodeHook(answer)
		if err != nil {
			return err
		}

		if h.Secret != "" {
			fmt.Fprintf(p.Err, "secret of %s: %s\n", h.ID, h.Secret)
		}

		_, err = fmt.Fprintln(p.Out, h.ID)
		return err
	})

	f.register(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "print the webhook as a JSON object on a line, with a generated secret")
	return c
}

func list(p *cli.Program) *cobra.Command {
	var asJSON bool
	c := savedlogin.WithAccount(p,
		&cobra.Command{Use: "list", Short: "List the webhooks, the oldest first", Args: cli.ExactArgs()},
		func(cmd *cobra.Command, s *savedlogin.Session, _ []string) error {
			// One page holds the maximum number of webhooks of an account.
			answer, err := s.Call(cmd.Context(), http.MethodGet, webhooksPath+"?page_size=1000", http.StatusOK)
			if err != nil {
				return fmt.Errorf("listing webhooks: %w", err)
			}

			var page struct {
				Data []json.RawMessage `json:"data"`
			}
			if err := json.Unmarshal(answer, &page); err != nil {
				return fmt.Errorf("reading the list of webhooks: %w", err)
			}

			var rows [][]string
			for _, item := range page.Data {
				if asJSON {
					if err := cli.JSONLine(p.Out, item); err != nil {
						return err
					}
					continue
				}

				h, err := decodeHook(item)
				if err != nil {
					return err
				}

				rows = append(rows,
					[]string{h.ID, h.Status, h.Format, cli.Printable(h.URL), cli.Printable(cli.OrDash(h.LastError))})
			}

			if asJSON {
				return nil
			}

			return cli.Table(p.Out, []string{"ID", "STATUS", "FORMAT", "URL", "LAST ERROR"}, rows)
		})

	c.Flags().BoolVar(&asJSON, "json", false, "print each webhook as a JSON object on a line")
	return c
}

func show(p *cli.Program) *cobra.Command {
	var asJSON bool
	c := savedlogin.WithAccount(p,
		&cobra.Command{Use: "show ID", Short: "Show a webhook and the state of its delivery",
			Args: cli.ExactArgs("ID")},
		func(cmd *cobra.Command, s *savedlogin.Session, args []string) error {
			answer, err := s.Call(cmd.Context(), http.MethodGet, webhookPath(args[0]), http.StatusOK)
			if err != nil {
				return fmt.Errorf("reading webhook %s: %w", args[0], err)
			}
			return printHook(p, answer, asJSON)
		})

	c.Flags().BoolVar(&asJSON, "json", false, "print it as a JSON object on a line")
	return c
}

func update(p *cli.Program) *cobra.Command {
	var f configFlags
	var asJSON bool
	var address string
	c := savedlogin.WithAccount(p, &cobra.Command{
		Use:   "update ID",
		Short: "Change the fields of the given flags, and print the webhook",
		Long: `Change the fields of the given flags, and print the webhook. A filter is replaced
as a whole, and removed by an empty value: --queue ''. Delivery continues at its
position.`,
		Args: cli.ExactArgs("ID"),
	}, func(cmd *cobra.Command, s *savedlogin.Session, args []string) error {
		fail := func(err error) error { return fmt.Errorf("changing webhook %s: %w", args[0], err) }
		etag, answer, err := s.Do(cmd.Context(),
			savedlogin.Request{Method: http.MethodGet, Path: webhookPath(args[0]), WantStatus: http.StatusOK})
		if err != nil {
			return fail(err)
		}

		h, err := decodeHook(answer)
		if err != nil {
			return err
		}

		if address != "" {
			h.URL = address
		}
		// PUT replaces the whole config, so that the fields without a flag are sent back as they were read.
		if err := f.apply(p, cmd.Flags(), &h.config); err != nil {
			return err
		}

		_, answer, err = s.Do(cmd.Context(),
			savedlogin.Request{Method: http.MethodPut, Path: webhookPath(args[0]), Body: h.config, IfMatch: etag,
				WantStatus: http.StatusOK})
		if err != nil {
			return fail(err)
		}

		return printHook(p, answer, asJSON)
	})

	c.Flags().StringVar(&address, "url", "", "where the events are sent")
	f.register(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "print it as a JSON object on a line")

	return c
}

func remove(p *cli.Program) *cobra.Command {
	return savedlogin.WithAccount(p,
		&cobra.Command{Use: "delete ID", Short: "Delete a webhook", Args: cli.ExactArgs("ID")},
		func(cmd *cobra.Command, s *savedlogin.Session, args []string) error {
			_, err := s.Call(cmd.Context(), http.MethodDelete, webhookPath(args[0]), http.StatusNoContent)
			if err != nil {
				return fmt.Errorf("deleting webhook %s: %w", args[0], err)
			}
			return nil
		})
}

func retry(p *cli.Program) *cobra.Command {
	var since string
	var asJSON bool
	c := savedlogin.WithAccount(p, &cobra.Command{
		Use:   "retry ID",
		Short: "Retry at once after failures or a pause, or send events again, and print the webhook",
		Args:  cli.ExactArgs("ID"),
	}, func(cmd *cobra.Command, s *savedlogin.Session, args []string) error {
		body := map[string]string{}
		if since != "" {
			_, err := event.ParseID(since)
			if err != nil {
				return cli.Usagef("--since: %w", err)
			}
			body["since"] = since
		}

		_, answer, err := s.Do(cmd.Context(),
			savedlogin.Request{Method: http.MethodPost, Path: webhookPath(args[0]) + "/retry", Body: body,
				WantStatus: http.StatusOK})
		if err != nil {
			return fmt.Errorf("retrying webhook %s: %w", args[0], err)
		}

		return printHook(p, answer, asJSON)
	})

	c.Flags().StringVar(&since, "since", "",
		"send the events after this event id again; empty: continue with the first undelivered one")
	c.Flags().BoolVar(&asJSON, "json", false, "print it as a JSON object on a line")

	return c
}
