package recording

import (
	"context"
	"time"
)

// unfinishedRemover is a Store in which a crash can leave unfinished uploads.
type unfinishedRemover interface {
	// RemoveUnfinished removes unfinished uploads that began before the time.
	RemoveUnfinished(ctx context.Context, before time.Time) error
}

// Sweep deletes objects without a row that are older than before: the remains of a crash
// or a failed deletion.
func (s *Service) Sweep(ctx context.Context, before time.Time) error {
	if t, ok := s.objects.store.(unfinishedRemover); ok {
		if err := t.RemoveUnfinished(ctx, before); err != nil {
			return err
		}
	}

	return s.objects.store.List(ctx, func(name string, modified time.Time) error {
		// A young one may be of an upload whose row is not written yet.
		if modified.After(before) {
			return nil
		}
		if !objectPattern.MatchString(name) {
			return nil // not an object of a recording
		}

		referenced, err := s.rows.isReferenced(ctx, name)
		if referenced || err != nil {
			return err
		}

		if err := s.objects.store.Delete(ctx, name); err != nil {
			return err
		}

		s.log.InfoContext(ctx, "orphaned recording object removed", "object", name)
		return nil
	})
}
