package api

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"trunkline/audit"
	"trunkline/identity"
	"trunkline/ingest/feed"
)

// Feeds knows the states of the platforms' feeds.
type Feeds interface {
	// FeedStatuses returns the state on each node of the feeds whose accounts are the account or
	// below it, ordered by feed and node.
	FeedStatuses(ctx context.Context, account string) ([]feed.Status, error)
	// CheckFeed connects to the platform of a feed, reads its state and waits for an event, of which it
	// returns no more than the format unless its account is the account or below it. Returns
	// fault.KindNotFound if the account may not see the feed, fault.KindForbidden if it has events of
	// accounts that are not below the account, fault.KindUnavailable if this node's settings do not have
	// it, and fault.KindLimited while the feed is being checked and shortly after.
	CheckFeed(ctx context.Context, account, name string) (*feed.CheckResult, error)
}

// feedRoutes are for administrators; auditors read.
type feedRoutes struct {
	feeds Feeds
	audit AuditLog
	auth  auth
}

func (r feedRoutes) routes() []route {
	return []route{
		{method: http.MethodGet, path: "/api/v2/feeds",
			handle: authorized(r.auth.authenticateAccountAdmin, r.handleList), also: auditors,
			scope: identity.ScopeAdmin, query: pageParams},
		{method: http.MethodPost, path: "/api/v2/feeds/:name/check",
			handle: authorized(r.auth.authenticateAccountAdmin, r.handleCheck), scope: identity.ScopeAdmin},
	}
}

func (r feedRoutes) handleList(c echo.Context, account identity.Account) error {
	statuses, err := r.feeds.FeedStatuses(c.Request().Context(), account.ID)
	if err != nil {
		return err
	}
	return writePage(c, statuses, func(s feed.Status) string { return s.Name + "\x00" + s.Node }, nil,
		func(s feed.Status) feed.Status { return s })
}

func (r feedRoutes) handleCheck(c echo.Context, account identity.Account) error {
	ctx, name := c.Request().Context(), c.Param("name")
	entry := r.audit.Entry(ctx, audit.FeedCheck, account.ID, "feed:"+name)
	var result *feed.CheckResult
	err := r.audit.Act(ctx, &entry, func() (err error) {
		result, err = r.feeds.CheckFeed(ctx, account.ID, name)
		return err
	})
	return respond(c, http.StatusOK, result, err)
}
