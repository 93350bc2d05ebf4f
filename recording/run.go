package recording

import (
	"context"
	"encoding/json"
	"time"

	"trunkline/internal/fault"
)

const (
	announceEvery = 5 * time.Second  // interval of announcing recordings left over by a crash
	announceLease = 30 * time.Second // after which another try is made
	announceLimit = 50               // recordings claimed at once
	sweepEvery    = 6 * time.Hour
	orphanAge     = 24 * time.Hour
)

// Run announces stored recordings and removes objects that no row names, until
// ctx ends. What goes wrong is logged and tried again.
func (s *Service) Run(ctx context.Context) error {
	announce, sweep := time.NewTicker(announceEvery), time.NewTicker(sweepEvery)
	defer announce.Stop()
	defer sweep.Stop()
	defer s.roots.Wipe()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.stored:
			s.report(ctx, "announcing recordings", s.announce(ctx))
		case <-announce.C:
			s.report(ctx, "announcing recordings", s.announce(ctx))
		case <-sweep.C:
			s.report(ctx, "sweeping the recordings' store", s.Sweep(ctx, time.Now().Add(-orphanAge)))
		}
	}
}

func (s *Service) report(ctx context.Context, doing string, err error) {
	if err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, doing+" failed, it is tried again", "error", err)
	}
}

// stored is the event recording.stored: nothing in it is secret.
type stored struct {
	Event       string `json:"event"`
	AccountID   string `json:"account_id"`
	Timestamp   int64  `json:"timestamp"` // Unix seconds
	RecordingID string `json:"recording_id"`
	Encrypted   bool   `json:"encrypted"`
	Size        int64  `json:"size"`
	ContentType string `json:"content_type"`
}

// announce publishes recording.stored for what has not been announced. A node
// claims recordings for a while, so that two do not announce the same one; when
// it fails, the next holder of the lease tries again.
func (s *Service) announce(ctx context.Context) error {
	for {
		claimed, err := s.rows.claim(ctx, time.Now(), announceLease, announceLimit)
		if err != nil || len(claimed) == 0 {
			return err
		}
		for _, r := range claimed {
			data, err := json.Marshal(stored{"recording.stored", r.AccountID, r.CreatedAt, r.RecordingID, r.Encrypted, r.Size, r.ContentType})
			if err != nil {
				return fault.Internal(err, "writing an event failed")
			}
			if err := s.publish.Publish(ctx, r.AccountID, data); err != nil {
				return err
			}
			if err := s.rows.announced(ctx, r); err != nil {
				return err
			}
		}
	}
}

// tidier is a store that crashes leave more in than objects.
type tidier interface {
	// Tidy removes uploads begun before and never finished.
	Tidy(ctx context.Context, before time.Time) error
}

// Sweep deletes the objects, older than before, that no row names: what a crash
// or a failed deletion left behind.
func (s *Service) Sweep(ctx context.Context, before time.Time) error {
	if t, ok := s.backend.(tidier); ok {
		if err := t.Tidy(ctx, before); err != nil {
			return err
		}
	}
	return s.backend.List(ctx, func(name string, modified time.Time) error {
		if modified.After(before) {
			return nil
		}
		if !objectPattern.MatchString(name) {
			return nil // not ours
		}
		if named, err := s.rows.names(ctx, name); named || err != nil {
			return err
		}
		if err := s.backend.Delete(ctx, name); err != nil {
			return err
		}
		s.log.InfoContext(ctx, "orphaned recording object removed", "object", name)
		return nil
	})
}
