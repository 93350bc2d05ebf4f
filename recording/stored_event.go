package recording

import (
	"context"
	"encoding/json"
	"time"

	"trunkline/internal/fault"
)

// storedEvent is the event recording.stored. It contains no secrets.
type storedEvent struct {
	Event       string `json:"event"`
	AccountID   string `json:"account_id"`
	Timestamp   int64  `json:"timestamp"` // Unix seconds
	RecordingID string `json:"recording_id"`
	Encrypted   bool   `json:"encrypted"`
	Size        int64  `json:"size"`
	ContentType string `json:"content_type"`
	Call
	Pauses    []Pause `json:"pauses,omitempty"`
	ExpiresAt int64   `json:"expires_at,omitempty"` // Unix seconds
}

// announce publishes recording.stored for recordings that are not announced yet. It
// acquires a lease on them, so that two nodes do not announce the same one. If this node
// fails, another one announces them after the lease.
func (s *Service) announce(ctx context.Context) error {
	for {
		leased, err := s.rows.lease(ctx, dueAnnouncement, time.Now(), announceLease, announceBatch)
		if err != nil || len(leased) == 0 {
			return err
		}

		for _, r := range leased {
			data, err := json.Marshal(storedEvent{
				Event: "recording.stored", AccountID: r.AccountID, Timestamp: r.CreatedAt, RecordingID: r.RecordingID,
				Encrypted: r.Encrypted, Size: r.Size, ContentType: r.ContentType,
				Call: r.Call, Pauses: r.Pauses, ExpiresAt: r.ExpiresAt,
			})
			if err != nil {
				return fault.Internal(err, "writing an event failed")
			}

			// Published before it is marked: after a crash between the two it is announced again.
			if err := s.publisher.Publish(ctx, r.AccountID, data); err != nil {
				return err
			}
			if err := s.rows.markAnnounced(ctx, r); err != nil {
				return err
			}
		}
	}
}
