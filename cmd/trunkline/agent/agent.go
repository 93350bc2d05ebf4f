// Package agent has the commands that list agents and act on them, as the user of the saved
// login.
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/trunkline/savedlogin"
)

// Command returns the command agent with its subcommands.
func Command(p *cli.Program) *cobra.Command {
	commands := []*cobra.Command{list(p)}
	for _, c := range []struct{ action, short string }{
		{"login", "Log an agent in; on Asterisk with --queue"},
		{"logout", "Log an agent out"},
		{"break", "Send an agent on a break"},
		{"ready", "Bring an agent back from a break"},
		{"join", "Make an agent a member of --queue"},
		{"leave", "End an agent's membership in --queue"},
	} {
		commands = append(commands, act(p, c.action, c.short))
	}

	return cli.Group("agent", "The agents of the platforms", commands...)
}

func act(p *cli.Program, action, short string) *cobra.Command {
	var queue, reason string
	command := savedlogin.WithAccount(p, &cobra.Command{
		Use:   action + " AGENT",
		Short: short,
		Long:  short + ". AGENT is the id of trunkline agent list.\nThe exit code is 0 when an event of the platform has confirmed it.",
		Args:  cli.ExactArgs("AGENT"),
	}, func(cmd *cobra.Command, s *savedlogin.Session, args []string) error {
		body := map[string]string{"action": action}
		if queue != "" {
			body["queue_id"] = queue
		}
		if reason != "" {
			body["reason"] = reason
		}

		return s.Act(cmd.Context(), p, "/api/v2/agents/"+url.PathEscape(args[0])+"/actions", body)
	})

	switch action {
	case "login", "join", "leave":
		command.Flags().StringVar(&queue, "queue", "", "the queue")
	case "break":
		command.Flags().StringVar(&reason, "reason", "", "the reason, where the platform has reasons")
	}

	return command
}

// row is an agent of a snapshot.
type row struct {
	AccountID string   `json:"account_id"`
	AgentID   string   `json:"agent_id"`
	AgentName string   `json:"agent_name,omitempty"`
	State     string   `json:"state"`
	Since     int64    `json:"since"`
	Reason    string   `json:"reason,omitempty"`
	Queues    []string `json:"queues,omitempty"`
	CallID    string   `json:"call_id,omitempty"`
}

func list(p *cli.Program) *cobra.Command {
	command := &cobra.Command{Use: "list", Short: "List the agents that are logged in", Args: cli.ExactArgs()}
	asJSON := cli.JSONListFlag(command.Flags())
	return savedlogin.WithSession(p, command, func(cmd *cobra.Command, s *savedlogin.Session, _ []string) error {
		agents, err := snapshot(cmd.Context(), s)
		if err != nil {
			return fmt.Errorf("listing the agents: %w", err)
		}

		return cli.List(p.Out, *asJSON, agents, []string{"AGENT", "NAME", "STATE", "SINCE", "QUEUES", "CALL"},
			func(r row) []string {
				state := r.State
				if r.Reason != "" {
					state += " (" + r.Reason + ")"
				}

				return []string{cli.Printable(r.AgentID), cli.OrDash(cli.Printable(r.AgentName)), cli.Printable(state),
					time.Unix(r.Since, 0).Format("15:04:05"),
					cli.OrDash(cli.Printable(strings.Join(r.Queues, ","))), cli.OrDash(cli.Printable(r.CallID))}
			})
	})
}

// snapshot exchanges the portal token for one of the channel and reads the agents.
func snapshot(ctx context.Context, s *savedlogin.Session) ([]row, error) {
	_, answer, err := s.Do(ctx,
		savedlogin.Request{Method: http.MethodPost, Path: "/ws/v1/cc_events/login", Body: struct{}{},
			WantStatus: http.StatusOK})
	if err != nil {
		return nil, err
	}

	var channel struct {
		Token string `json:"access_token"`
	}
	err = json.Unmarshal(answer, &channel)
	if err != nil || channel.Token == "" {
		return nil, errors.New("the response has no token: is it a Trunkline server?")
	}

	_, body, err := s.Do(ctx, savedlogin.Request{Method: http.MethodGet, Path: "/ws/v1/cc_events/snapshot",
		Token: channel.Token, WantStatus: http.StatusOK})
	if err != nil {
		return nil, err
	}

	var found struct {
		Agents []row `json:"agents"`
	}

	err = json.Unmarshal(body, &found)
	return found.Agents, err
}
