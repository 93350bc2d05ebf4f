package aiprovider

import (
	"context"
	"fmt"

	"trunkline/internal/aiprotocol"
	"trunkline/internal/netguard"
)

// Open returns a provider of any account with its secrets unsealed, for a connection to
// it. It costs one database query.
func (s *Service) Open(ctx context.Context, id string) (Provider, error) {
	r, err := selectRow(ctx, s.db, id)
	if err != nil {
		return Provider{}, err
	}

	format, ok := aiprotocol.FormatOf(r.audioFormat)
	if !ok {
		return Provider{}, damaged(fmt.Errorf("AI provider %s has audio format %q", r.id, r.audioFormat))
	}

	sealed, err := s.unseal(r)
	if err != nil {
		return Provider{}, err
	}

	p := Provider{
		ID: r.id, AccountID: r.accountID, Name: r.name, Format: format, URL: r.url, Headers: sealed.headers,
		Protocol: r.protocol, Secret: sealed.token, Session: r.session,
		Listens: Mode(r.mode) == ModeListen, Extensions: r.extensions.Bool, Fallback: Fallback(r.fallback),
	}
	if p.Fallback == "" {
		p.Fallback = FallbackHangup
	}

	return p, nil
}

// Guard returns the guard for connections to the provider.
func (s *Service) Guard(p Provider) netguard.Guard {
	return netguard.Guard{Allow: s.settings.AllowNetworks, LoopbackOnly: netguard.WebSocket.IsPlain(p.URL),
		Setting: "ai_provider.allow_networks"}
}
