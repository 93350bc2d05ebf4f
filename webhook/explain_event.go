package webhook

import (
	"context"

	"trunkline/event"
	"trunkline/identity"
)

// EventOutcome is the outcome of an event at a webhook.
type EventOutcome string

// The outcomes; docs/explain.md explains each.
const (
	OutcomeFailing      EventOutcome = "failing"       // attempts with it or an earlier event fail and are repeated
	OutcomePaused       EventOutcome = "paused"        // no attempts before a retry
	OutcomePending      EventOutcome = "pending"       // not sent yet, or sent after the last checkpoint
	OutcomeDelivered    EventOutcome = "delivered"     // the receiver has accepted it
	OutcomeCreatedLater EventOutcome = "created_later" // the webhook was created after it
	OutcomeFiltered     EventOutcome = "filtered"      // its filters do not select it
)

// Outcomes returns every outcome.
func Outcomes() []EventOutcome {
	return []EventOutcome{OutcomeFailing, OutcomePaused, OutcomePending, OutcomeDelivered, OutcomeCreatedLater,
		OutcomeFiltered}
}

// Explanation is the outcome of an event at a webhook. Its failures are those of the
// webhook's last attempt, which may have been with an earlier event.
type Explanation struct {
	Webhook
	Outcome    EventOutcome
	FilteredBy *identity.FilterMismatch // set for OutcomeFiltered
}

// Question is a request for the outcomes of an event.
type Question struct {
	EventID event.ID
	Offset  int64 // in the event's partition of cc.evt
	Message identity.Message
	Root    string // only webhooks of this account and those below it
}

// Explain returns the outcome of an event at each webhook whose account can access the
// event's, by the current filters and positions. Positions are up to checkpointInterval
// old.
func (s *Service) Explain(ctx context.Context, q Question, tree *identity.Tree) ([]Explanation, error) {
	partition := q.EventID.Partition()
	positions, err := listPositions(ctx, s.db, partition)
	if err != nil {
		return nil, err
	}

	partitionPos, found, err := s.positions.Find(ctx, s.db, partition)
	if err != nil {
		return nil, err
	}

	explained := []Explanation{}
	for _, account := range tree.Path(q.Message.AccountID) {
		if !tree.Contains(q.Root, account) {
			break
		}

		rows, err := selectRows(ctx, s.db, account)
		if err != nil {
			return nil, err
		}

		for i := range rows {
			r := &rows[i]
			e := Explanation{Webhook: r.Webhook}
			pos, behind := positions[r.ID]
			// A row of before a retry from an event id does not count.
			behind = behind && pos.generation == r.positionGeneration
			passed := behind && (q.EventID <= pos.lastID || q.Offset < pos.next) ||
				!behind && found && q.Offset < partitionPos.Offset
			e.FilteredBy = r.Filters.Mismatch(r.AccountID, &q.Message, tree)
			if e.FilteredBy != nil {
				e.Outcome = OutcomeFiltered
			} else {
				e.Outcome = r.outcome(q.EventID, passed)
			}

			explained = append(explained, e)
		}
	}

	return explained, nil
}

// outcome returns the outcome of an event that the filters select. passed is true if the
// webhook's position is after the event.
func (r *webhookRow) outcome(id event.ID, passed bool) EventOutcome {
	switch {
	case passed && id.Time().Before(r.CreatedAt):
		return OutcomeCreatedLater
	case passed:
		return OutcomeDelivered
	case r.Status == StatusPaused:
		return OutcomePaused
	case r.Status == StatusFailing:
		return OutcomeFailing
	}

	return OutcomePending
}
