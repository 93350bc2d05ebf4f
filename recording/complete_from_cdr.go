package recording

import (
	"context"
	"time"

	"trunkline/event"
	"trunkline/internal/report"
	"trunkline/internal/sqldb"
)

// CallRecords finds the records of calls.
type CallRecords interface {
	// FindCall returns the record of the account's leg with the call id, or if that is "", of the
	// leg that a look-up by the origination call id returns. ok is false if there is none (yet).
	FindCall(ctx context.Context, account, callID, originationCallID string) (record event.CDR, ok bool, err error)
}

// A recording and the record of its call come in any order. A recording that knows its call looks
// for the record when it is stored, and then again and again, each time after a tenth of its age,
// until it has found it or is maxCompletionAge old. So nothing has to be done when a record comes.
const (
	minCompletionWait = time.Second
	maxCompletionWait = time.Minute
	maxCompletionAge  = 7 * 24 * time.Hour
	completionBatch   = 50
	// announceWait is how long recording.stored waits for the call's record, to have its fields.
	announceWait = 5 * time.Second
)

// nextCompletion returns when to look next for the record of a recording's call, in Unix
// milliseconds; nil: never.
func (r *row) nextCompletion(now time.Time) *int64 {
	age := now.Sub(time.UnixMilli(r.createdAt))
	if r.isComplete() || age > maxCompletionAge {
		return nil
	}
	return new(now.Add(min(max(age/10, minCompletionWait), maxCompletionWait)).UnixMilli())
}

// fillFromRecord fills the row's missing fields from its call's record. It returns whether there is one.
func (s *Service) fillFromRecord(ctx context.Context, r *row) (bool, error) {
	if s.calls == nil || r.CallID == "" && r.OriginationCallID == "" {
		return false, nil
	}
	record, ok, err := s.calls.FindCall(ctx, r.AccountID, r.CallID, r.OriginationCallID)
	if err != nil || !ok {
		return false, err
	}
	r.complete(&record)
	return true, nil
}

// completeRecordings looks for the records of the calls whose recordings are due.
func (s *Service) completeRecordings(ctx context.Context) error {
	if s.calls == nil {
		return nil
	}

	for {
		now := time.Now()
		leased, err := s.rows.lease(ctx, dueCompletion, now, announceLease, completionBatch)
		if err != nil || len(leased) == 0 {
			return err
		}

		for _, r := range leased {
			found, err := s.fillFromRecord(ctx, r)
			if err != nil {
				return err
			}

			if err := s.setExpiry(ctx, r); err != nil {
				return err
			}

			next := r.nextCompletion(now)
			if found {
				next = nil
			}
			if err := s.rows.updateCall(ctx, r, next, found); err != nil {
				return err
			}
			if found {
				s.wake()
			}
		}
	}
}

// completeChanged does the same, unless no recording waits for a record and none was stored since.
func (s *Service) completeChanged(ctx context.Context, changes *sqldb.ChangeWatch) error {
	waiting := false
	err := changes.Poll(func() error {
		if err := s.completeRecordings(ctx); err != nil {
			return err
		}
		var err error
		waiting, err = s.rows.hasIncomplete(ctx)
		return err
	})

	if waiting { // each is due at a time of its own
		changes.Distrust()
	}

	return err
}

// hasIncomplete reports whether a recording waits for its call's record, due or not.
func (t rows) hasIncomplete(ctx context.Context) (waiting bool, err error) {
	err = t.db.QueryRowContext(ctx,
		`SELECT EXISTS (SELECT 1 FROM recordings WHERE complete_after IS NOT NULL)`).Scan(&waiting)
	return waiting, sqldb.Wrap(err, "looking for recordings without their call's record")
}

// updateCall stores what the recording knows of its call, and when to look for its record next.
// If announceNow is set, an announcement that waits for the record waits no longer.
func (t rows) updateCall(ctx context.Context, r *row, next *int64, announceNow bool) error {
	_, err := t.db.ExecWithoutTx(ctx,
		`UPDATE recordings SET call_id = $1, interaction_id = $2, origination_call_id = $3,
		agent_id = $4, queue_id = $5, direction = $6, started_at = $7, duration_ms = $8, expires_at = $9, complete_after = $10,
		announce_after = CASE WHEN $11 AND announce_after IS NOT NULL THEN created_at ELSE announce_after END
		WHERE account_id = $12 AND recording_id = $13 AND created_at = $14`,
		r.CallID, r.InteractionID, r.OriginationCallID, r.AgentID, r.QueueID, r.Direction, r.StartedAt, r.DurationMS,
		r.ExpiresAt, next,
		announceNow, r.AccountID, r.RecordingID, r.createdAt)
	return sqldb.Wrap(err, "storing what a recording knows of its call")
}

// OfCalls returns the ids of the first recordings of the account's calls, by call id.
func (s *Service) OfCalls(ctx context.Context, account string, callIDs []string) (map[string]string, error) {
	return s.rows.firstOfCalls(ctx, account, callIDs)
}

func (t rows) firstOfCalls(ctx context.Context, account string, callIDs []string) (map[string]string, error) {
	ids := make(map[string]string)
	if len(callIDs) == 0 {
		return ids, nil
	}

	const perQuery = 500 // below the drivers' limits of arguments
	for len(callIDs) > 0 {
		part := callIDs[:min(len(callIDs), perQuery)]
		callIDs = callIDs[len(part):]

		var q report.Conditions
		q.Add("account_id = ? AND call_id <> ''", account)
		q.AddIn("call_id", part)
		found, err := t.db.QueryContext(ctx, `SELECT call_id, recording_id FROM recordings`+q.Text()+
			` ORDER BY created_at DESC, recording_id DESC`, q.Args()...)
		type pair struct{ call, recording string }

		pairs, err := sqldb.Collect(found, err, "looking for recordings of calls",
			func(scan sqldb.ScanFunc) (p pair, err error) {
				return p, scan(&p.call, &p.recording)
			})
		if err != nil {
			return nil, err
		}

		for _, p := range pairs { // the first one is the last to be set
			ids[p.call] = p.recording
		}
	}

	return ids, nil
}
