package app

import (
	"context"
	"fmt"

	"trunkline/identity"
	"trunkline/internal/kafka"
	"trunkline/settings"
	"trunkline/webhook"
)

// openWebhooks opens the accounts' webhooks, whose signing keys are secrets.
func (a *App) openWebhooks(ctx context.Context) (err error) {
	a.webhooks, err = webhook.New(ctx, a.settings.Webhook, webhook.Deps{
		DB: a.db, Keys: a.keys, Audit: a.audit, Filters: webhookFilterChecker{a}, Log: kafka.NewLog(a.cluster),
		Version: a.version,
	})
	if err != nil {
		return fmt.Errorf("webhooks: %w", err)
	}
	return nil
}

// webhookFilterChecker checks filters with the directory, which is opened after the secrets.
type webhookFilterChecker struct{ app *App }

// CheckFilter implements webhook.FilterChecker.
func (f webhookFilterChecker) CheckFilter(ctx context.Context, accountID string,
	filter identity.Filter) (identity.Filter, error) {
	return f.app.identity.Directory.CheckFilter(ctx, accountID, filter)
}

// buildWebhooks builds the delivery to webhooks.
func (a *App) buildWebhooks() {
	if !a.hasRole(settings.RoleAPI) {
		return
	}
	deliverer := webhook.NewDeliverer(a.webhooks, webhook.DelivererConfig{Accounts: a.identity.Directory}, a.registry,
		a.log)
	a.lifecycle.addRun("webhooks", deliverer.Run)
}
