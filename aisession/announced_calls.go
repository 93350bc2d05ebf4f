package aisession

import (
	"context"
	"time"

	"github.com/google/uuid"

	"trunkline/config/aiprovider"
	"trunkline/internal/fault"
)

// Announce stores a call that will arrive over AudioSocket for Settings.AnnouncedFor. The error is
// fault.KindConflict if the UUID has been announced already.
func (s *Service) Announce(ctx context.Context, a aiprovider.Announcement) error {
	id, err := uuid.Parse(a.UUID)
	if err != nil {
		return fault.InvalidField("uuid", "invalid", "must be a UUID")
	}

	a.UUID = id.String()
	created, err := s.deps.Announcements.Put(ctx, a, s.settings.AnnouncedFor)
	if err != nil {
		return fault.Unavailable(err, time.Second, "the call cannot be announced now")
	}

	if !created {
		return fault.Conflict("this UUID is announced already")
	}

	return nil
}

// TakeAnnouncement removes and returns an announcement and its provider. A UUID that was not announced may
// instead be a token that a dialplan signed with a provider's secret. The error is fault.KindNotFound
// for any other UUID.
func (s *Service) TakeAnnouncement(ctx context.Context,
	id uuid.UUID) (aiprovider.Announcement, aiprovider.Provider, error) {
	a, found, err := s.deps.Announcements.Take(ctx, id.String())
	if err != nil {
		return a, aiprovider.Provider{}, fault.Unavailable(err, time.Second, "announced calls cannot be looked up now")
	}

	if !found {
		return s.acceptDialplanUUID(ctx, id)
	}

	p, err := s.deps.Providers.Open(ctx, a.ProviderID)
	if err == nil && p.AccountID != a.AccountID {
		err = fault.NotFound("AI provider not found")
	}

	return a, p, err
}
