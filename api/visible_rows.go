package api

import (
	"context"

	"github.com/labstack/echo/v4"

	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/internal/report"
)

// Roster knows which agents are in which queues.
type Roster interface {
	// AgentsIn returns the agents of the account that are members of one of the queues,
	// also those that are not logged in.
	AgentsIn(ctx context.Context, account string, queues []string) ([]string, error)
}

// rowVisibility finds what a caller's role sees of the rows of a report.
type rowVisibility struct{ roster Roster }

// ofCaller returns what the request's caller sees of an account's rows, nil for everything.
func (v rowVisibility) ofCaller(c echo.Context, account identity.Account) (*report.Visible, error) {
	caller := callerOf(c)
	visibility := caller.Visibility()
	if visibility.AdmitsAll() {
		return nil, nil
	}

	seen := &report.Visible{Queues: visibility.Limits().QueueIDs, Agents: visibility.Limits().AgentIDs}
	// In another account the same extension is somebody else's.
	if account.ID == caller.AccountID {
		seen.Extension = visibility.Extension()
	}
	if visibility.Role() != identity.RoleSupervisor {
		return seen, nil
	}

	seen.Any = len(seen.Queues) == 0
	if seen.Any {
		return seen, nil
	}
	if v.roster == nil {
		return nil, fault.Unavailable(nil, 0, "The agents of the queues are not known here")
	}

	agents, err := v.roster.AgentsIn(c.Request().Context(), account.ID, seen.Queues)
	seen.Agents = agents
	return seen, err
}
