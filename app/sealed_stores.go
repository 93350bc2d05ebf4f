package app

import (
	"context"
	"fmt"

	"trunkline/config/aiprovider"
	"trunkline/config/encryption"
	"trunkline/settings"
	"trunkline/webhook"
)

// sealedStores holds the stores of accounts' configuration that has secrets in it, sealed under the master keys.
type sealedStores struct {
	providers  *aiprovider.Service // nil without the roles api, origination and aisession
	encryption *encryption.Service // likewise
	webhooks   *webhook.Service    // nil without the role api
}

func openSealedStores(ctx context.Context, b *base) (s sealedStores, err error) {
	if !b.handlesCalls() {
		return s, nil
	}

	s.providers, err = aiprovider.New(ctx, b.settings.AIProvider, b.db, b.keys, b.audit, b.registry)
	if err != nil {
		return s, fmt.Errorf("AI providers: %w", err)
	}

	s.encryption, err = encryption.New(ctx, b.db, b.keys, b.audit, b.registry)
	if err != nil {
		return s, fmt.Errorf("recording encryption: %w", err)
	}

	if b.hasRole(settings.RoleAPI) {
		s.webhooks, err = openWebhooks(ctx, b)
	}

	return s, err
}
