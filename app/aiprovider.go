package app

import (
	"context"
	"fmt"

	"trunkline/api"
	"trunkline/config/aiprovider"
	"trunkline/config/settings"
)

// openProviders opens the accounts' AI providers, whose headers are secrets.
func (a *App) openProviders(ctx context.Context) (err error) {
	if !a.has(settings.RoleAPI) && !a.has(settings.RoleAISession) {
		return nil
	}
	a.providers, err = aiprovider.New(ctx, a.settings.AIProvider, a.db, a.keys, a.audit, a.registry)
	if err != nil {
		return fmt.Errorf("AI providers: %w", err)
	}
	return nil
}

// buildProviders adds them to the routes.
func (a *App) buildProviders(deps *api.Deps) {
	if a.providers != nil {
		deps.AIOpener = a.providers
	}
	if a.has(settings.RoleAPI) {
		deps.AIProviders = a.providers
	}
}
