package recording

import (
	"context"
	"encoding/json"
	"time"

	"trunkline/internal/fault"
)

const (
	announceEvery = 5 * time.Second  // interval of announcing recordings left over by a crash
	announceLease = 30 * time.Second // after which the announcement is retried
	announceLimit = 50               // recordings claimed at once
	sweepEvery    = 6 * time.Hour
	orphanAge     = 24 * time.Hour
)

// Run announces stored recordings and removes objects without a row, until ctx ends.
// Failures are logged and retried.
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
		s.log.WarnContext(ctx, doing+" failed, retrying", "error", err)
	}
}

// stored is the event recording.stored. It has no secrets.
type stored struct {
	Event       string `json:"event"`
	AccountID   string `json:"account_id"`
	Timestamp   int64  `json:"timestamp"` // Unix seconds
	RecordingID string `json:"recording_id"`
	Encrypted   bool   `json:"encrypted"`
	Size        int64  `json:"size"`
	ContentType string `json:"content_type"`
}

// announce publishes recording.stored for recordings that are not announced yet. A node
// takes a lease on them, so that two nodes do not announce the same one; if the node
// fails, the next holder of the lease announces them.
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

// tidier is a store in which a crash can leave more than objects.
type tidier interface {
	// Tidy removes unfinished uploads that began before the time.
	Tidy(ctx context.Context, before time.Time) error
}

// Sweep deletes objects without a row that are older than before: the remains of a crash
// or a failed deletion.
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
