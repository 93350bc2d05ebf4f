package app

import (
	"context"
	"fmt"

	"trunkline/config/aiprovider"
)

// openProviders opens the accounts' AI providers, whose headers are secrets.
func (a *App) openProviders(ctx context.Context) (err error) {
	if !a.handlesCalls() {
		return nil
	}
	a.providers, err = aiprovider.New(ctx, a.settings.AIProvider, a.db, a.keys, a.audit, a.registry)
	if err != nil {
		return fmt.Errorf("AI providers: %w", err)
	}
	return nil
}
