package identity

import (
	"context"

	"trunkline/identity/oidc"
)

// CheckProviderToken checks that EventsLoginByToken would accept the token, which it counts
// and writes to the audit log where not. Like a login it creates or updates the user.
func (s *Service) CheckProviderToken(ctx context.Context, token, address string) error {
	_, _, err := s.authenticateByProvider(ctx, AudienceEvents, address,
		func() (oidc.Identity, error) { return s.provider.Verify(ctx, token) })
	return err
}
