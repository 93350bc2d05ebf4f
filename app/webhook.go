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
func openWebhooks(ctx context.Context, b *base) (*webhook.Service, error) {
	webhooks, err := webhook.New(ctx, b.settings.Webhook, webhook.Deps{
		DB: b.db, Keys: b.keys, Audit: b.audit, Filters: webhookFilterChecker{b}, LogReader: kafka.NewLog(b.cluster),
		Version: b.version,
	})
	if err != nil {
		return nil, fmt.Errorf("webhooks: %w", err)
	}
	return webhooks, nil
}

// webhookFilterChecker checks filters with the directory, which is opened after the secrets.
type webhookFilterChecker struct{ base *base }

// CheckFilter implements webhook.FilterChecker.
func (f webhookFilterChecker) CheckFilter(ctx context.Context, accountID string,
	filter identity.Filter) (identity.Filter, error) {
	return f.base.identity.Directory.CheckFilter(ctx, accountID, filter)
}

// buildWebhooks builds the delivery to webhooks.
func buildWebhooks(b *base) {
	if !b.hasRole(settings.RoleAPI) {
		return
	}
	deliverer := webhook.NewDeliverer(b.sealedStores.webhooks, webhook.DelivererConfig{Accounts: b.identity.Directory},
		b.registry, b.log)
	b.lifecycle.addRun("webhooks", deliverer.Run)
}
