package api

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"trunkline/identity"
	"trunkline/ingest/feed"
)

// FeedStatuses knows the states of the platforms' feeds.
type FeedStatuses interface {
	// FeedStatuses returns the state on each node of the feeds whose accounts are the account or
	// below it, ordered by feed and node.
	FeedStatuses(ctx context.Context, account string) ([]feed.Status, error)
}

// feedRoutes are for administrators; auditors read.
type feedRoutes struct {
	feeds FeedStatuses
	auth  auth
}

func (r feedRoutes) routes() []route {
	return []route{{method: http.MethodGet, path: "/api/v2/feeds", handle: authorized(r.auth.authenticateAccountAdmin, r.handleList), also: auditors, scope: identity.ScopeAdmin, query: pageParams}}
}

func (r feedRoutes) handleList(c echo.Context, account identity.Account) error {
	statuses, err := r.feeds.FeedStatuses(c.Request().Context(), account.ID)
	if err != nil {
		return err
	}
	return writePage(c, statuses, func(s feed.Status) string { return s.Name + "\x00" + s.Node }, nil, func(s feed.Status) feed.Status { return s })
}
