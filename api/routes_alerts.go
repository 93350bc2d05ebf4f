package api

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"trunkline/audit"
	"trunkline/event"
	"trunkline/identity"
	"trunkline/stats"
	"trunkline/stats/figures"
)

// Alerts reads the alerts that have begun.
type Alerts interface {
	// ListAlerts returns the page of the filter's alerts that begins at its start key.
	ListAlerts(ctx context.Context, f figures.AlertFilter) (*figures.AlertPage, error)
}

const (
	alertConfigPath = "/api/v2/config/alerts"
	alertsPath      = "/api/v2/alerts"
)

// alertConfigRoutes are for administrators; auditors read.
type alertConfigRoutes struct {
	configs *stats.QueueConfigs
	audit   AuditLog
	auth    auth
}

func (r alertConfigRoutes) routes() []route {
	return []route{
		{method: http.MethodGet, path: alertConfigPath, handle: authorized(r.auth.authenticateAdmin, r.handleGet),
			also: auditors},
		{method: http.MethodPut, path: alertConfigPath, handle: authorized(r.auth.authenticateAdmin, r.handlePut)},
		{method: http.MethodDelete, path: alertConfigPath,
			handle: authorized(r.auth.authenticateAdmin, r.handleDelete)},
	}
}

func (r alertConfigRoutes) handleGet(c echo.Context, account identity.Account) error {
	config, etag, err := r.configs.FindAlerts(c.Request().Context(), account.ID)
	return respondTagged(c, http.StatusOK, etag, config, err)
}

func (r alertConfigRoutes) handlePut(c echo.Context, account identity.Account) error {
	body, err := decode(c)
	if err != nil {
		return err
	}

	rules, err := parseAlertRules(body)
	if err != nil {
		return err
	}

	etag, err := r.setRules(c, account, rules)
	return respondTagged(c, http.StatusOK, etag, stats.AlertConfig{Alerts: rules}, err)
}

// handleDelete makes the account inherit again.
func (r alertConfigRoutes) handleDelete(c echo.Context, account identity.Account) error {
	_, err := r.setRules(c, account, nil)
	return noContent(c, err)
}

// setRules stores the rules and then the audit entry.
func (r alertConfigRoutes) setRules(c echo.Context, account identity.Account,
	rules []stats.AlertRule) (etag string, err error) {
	ctx := c.Request().Context()
	entry := r.audit.Entry(ctx, audit.AlertConfigUpdate, account.ID, "alert_config:"+account.ID)
	err = r.audit.Act(ctx, &entry, func() (err error) {
		etag, err = r.configs.UpdateAlerts(ctx, account.ID, rules, c.Request().Header.Get("If-Match"))
		return err
	})
	return etag, err
}

func parseAlertRules(body *jsonObject) ([]stats.AlertRule, error) {
	rules := []stats.AlertRule{}
	for _, one := range body.Objects("alerts", required) {
		rule := stats.AlertRule{Name: one.String("name", required), Queues: one.Strings("queues", optional),
			Agents: one.Strings("agents", optional)}
		when := one.Object("when", required)
		rule.When = stats.AlertWhen{
			Metric: stats.Metric(when.String("metric", required)), State: event.State(when.String("state", optional)),
			Above: when.Number("above"), Below: when.Number("below"), ForSeconds: when.Int("for_seconds", optional),
			WhileWaiting: when.Bool("while_waiting", optional), MinCalls: when.Int("min_calls", optional),
		}
		rules = append(rules, rule)
	}

	// What GET says of it may be sent back.
	if body.Has("inherited_from") {
		body.String("inherited_from", optional)
	}

	return rules, body.Err(invalidBody)
}

type alertRoutes struct {
	alerts     Alerts
	visibility rowVisibility
	auth       auth
}

func (r alertRoutes) routes() []route {
	return []route{{method: http.MethodGet, path: alertsPath,
		handle: authorized(r.auth.authenticateAccount, r.handleList), also: limitedRoles, scope: identity.ScopeRead,
		query: []string{"state", "startDate", "endDate", "queue_id", "agent_id", "page_size", "start_key"}}}
}

func (r alertRoutes) handleList(c echo.Context, account identity.Account) error {
	filter, err := figures.ParseAlertFilter(c.QueryParams())
	if err != nil {
		return err
	}

	filter.Account = account.ID
	filter.Visible, err = r.visibility.ofCaller(c, account)
	if err != nil {
		return err
	}

	page, err := r.alerts.ListAlerts(c.Request().Context(), filter)
	return respond(c, http.StatusOK, page, err)
}
