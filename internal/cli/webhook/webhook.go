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

	"trunkline/event"
	"trunkline/internal/cli"
	"trunkline/internal/cli/portal"
)

// Command returns the command webhook.
func Command(p *cli.Program) *cobra.Command {
	return cli.Group("webhook", "The webhooks of an account", create(p), list(p), show(p), update(p), remove(p), retry(p))
}

const path = "/api/v2/webhooks"

func pathOf(id string) string { return path + "/" + url.PathEscape(id) }

func create(p *cli.Program) *cobra.Command {
	var f configFlags
	var asJSON bool
	c := portal.WithAccount(p, &cobra.Command{
		Use:   "create URL",
		Short: "Make a webhook and print its id; a secret that is not given is made and printed on stderr",
		Example: `  trunkline webhook create https://crm.example.com/trunkline --queue sales --name 'queue.*'
  trunkline webhook create https://crm.example.com/trunkline --format cloudevents --json`,
		Args: cli.ExactArgs("URL"),
	}, func(cmd *cobra.Command, s *portal.Session, args []string) error {
		made := config{URL: args[0]}
		if err := f.apply(p, cmd.Flags(), &made); err != nil {
			return err
		}
		_, answer, err := s.Do(cmd.Context(), portal.Request{Method: http.MethodPost, Path: path, Body: made, Want: http.StatusCreated})
		if err != nil {
			return fmt.Errorf("creating a webhook: %w", err)
		}
		if asJSON {
			return cli.JSONLine(p.Out, json.RawMessage(answer))
		}
		h, err := read(answer)
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
	c.Flags().BoolVar(&asJSON, "json", false, "print the webhook as a JSON object on a line, with a secret that was made")
	return c
}

func list(p *cli.Program) *cobra.Command {
	var asJSON bool
	c := portal.WithAccount(p, &cobra.Command{Use: "list", Short: "List the webhooks, the oldest first", Args: cli.ExactArgs()},
		func(cmd *cobra.Command, s *portal.Session, _ []string) error {
			// One page holds the maximum number of webhooks of an account.
			answer, err := s.Call(cmd.Context(), http.MethodGet, path+"?page_size=1000", http.StatusOK)
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
			for _, one := range page.Data {
				if asJSON {
					if err := cli.JSONLine(p.Out, one); err != nil {
						return err
					}
					continue
				}
				h, err := read(one)
				if err != nil {
					return err
				}
				rows = append(rows, []string{h.ID, h.Status, h.Format, cli.Printable(h.URL), cli.Printable(cli.OrDash(h.LastError))})
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
	c := portal.WithAccount(p, &cobra.Command{Use: "show ID", Short: "Show a webhook and the state of its delivery", Args: cli.ExactArgs("ID")},
		func(cmd *cobra.Command, s *portal.Session, args []string) error {
			answer, err := s.Call(cmd.Context(), http.MethodGet, pathOf(args[0]), http.StatusOK)
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
	c := portal.WithAccount(p, &cobra.Command{
		Use:   "update ID",
		Short: "Change what the flags name, and print the webhook",
		Long: `Change what the flags name, and print the webhook. A filter is replaced as a whole,
and removed by an empty value: --queue ''. Delivery continues at its position.`,
		Args: cli.ExactArgs("ID"),
	}, func(cmd *cobra.Command, s *portal.Session, args []string) error {
		fail := func(err error) error { return fmt.Errorf("changing webhook %s: %w", args[0], err) }
		tag, answer, err := s.Do(cmd.Context(), portal.Request{Method: http.MethodGet, Path: pathOf(args[0]), Want: http.StatusOK})
		if err != nil {
			return fail(err)
		}
		h, err := read(answer)
		if err != nil {
			return err
		}
		if address != "" {
			h.URL = address
		}
		if err := f.apply(p, cmd.Flags(), &h.config); err != nil {
			return err
		}
		_, answer, err = s.Do(cmd.Context(), portal.Request{Method: http.MethodPut, Path: pathOf(args[0]), Body: h.config, IfMatch: tag, Want: http.StatusOK})
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
	return portal.WithAccount(p, &cobra.Command{Use: "delete ID", Short: "Delete a webhook", Args: cli.ExactArgs("ID")},
		func(cmd *cobra.Command, s *portal.Session, args []string) error {
			if _, err := s.Call(cmd.Context(), http.MethodDelete, pathOf(args[0]), http.StatusNoContent); err != nil {
				return fmt.Errorf("deleting webhook %s: %w", args[0], err)
			}
			return nil
		})
}

func retry(p *cli.Program) *cobra.Command {
	var since string
	var asJSON bool
	c := portal.WithAccount(p, &cobra.Command{
		Use:   "retry ID",
		Short: "Retry at once after failures or a pause, or send events again, and print the webhook",
		Args:  cli.ExactArgs("ID"),
	}, func(cmd *cobra.Command, s *portal.Session, args []string) error {
		body := map[string]string{}
		if since != "" {
			if _, err := event.ParseID(since); err != nil {
				return cli.Usagef("--since: %w", err)
			}
			body["since"] = since
		}
		_, answer, err := s.Do(cmd.Context(), portal.Request{Method: http.MethodPost, Path: pathOf(args[0]) + "/retry", Body: body, Want: http.StatusOK})
		if err != nil {
			return fmt.Errorf("retrying webhook %s: %w", args[0], err)
		}
		return printHook(p, answer, asJSON)
	})
	c.Flags().StringVar(&since, "since", "", "send the events after this event id again; empty: continue with the first undelivered one")
	c.Flags().BoolVar(&asJSON, "json", false, "print it as a JSON object on a line")
	return c
}
