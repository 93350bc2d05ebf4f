package origination

import (
	"context"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/tracing"
)

// place stores the order and then has the platform dial it, so that every ringing call is in the
// database.
func (s *Service) place(ctx context.Context, order Order) (callID string, err error) {
	// The order continues if the client disconnects.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.PlaceTimeout)
	defer cancel()

	ctx, span := s.tracer.StartClient(ctx, "originate", tracing.Account(order.AccountID))
	defer func() { span.End(err) }()

	order.Trace = tracing.FromContext(ctx)
	if err := s.admission.Acquire(ctx, order.newAttempt()); err != nil {
		return "", err
	}

	if err := s.calls.create(ctx, order, time.Now()); err != nil {
		s.calls.delete(order.ID)
		return "", err
	}

	placed, err := s.originateOnPlatform(ctx, order)
	if err != nil {
		s.calls.delete(order.ID)
		return "", err
	}

	if !ValidID(placed.CallID) {
		placed.CallID = ""
	}
	if err := s.calls.confirm(ctx, order.ID, placed); err != nil {
		// The phone rings, so return the id; the store keeps trying.
		s.log.WarnContext(ctx, "storing a call's id delayed", "error", err)
	}

	return placed.CallID, nil
}

// originateOnPlatform has the platform place the order. A user's first order may create the platform's
// click-to-call resource; the user's other orders wait for it.
func (s *Service) originateOnPlatform(ctx context.Context, order Order) (Placed, error) {
	if order.ClickToCallID == "" {
		unlock, err := s.userLocks.Lock(ctx, order.UserID)
		if err != nil {
			return Placed{}, fault.Unavailable(err, time.Second, "The platform has not answered in time")
		}
		defer unlock()
		order.ClickToCallID = s.resourceIDs.find(order.UserID)
	}

	placed, err := s.driver.Originate(ctx, order)
	if !ValidID(placed.ClickToCallID) {
		placed.ClickToCallID = ""
	}
	if placed.ClickToCallID != "" { // also if it was created and the call was then refused
		s.saveResource(ctx, order.UserID, placed.ClickToCallID)
	}

	return placed, err
}

// saveResource stores the id of the resource that was created for the user. A failure is logged: the
// next order creates the resource again.
func (s *Service) saveResource(ctx context.Context, userID, id string) {
	s.resourceIDs.set(userID, id)
	if err := s.users.SetClickToCallID(context.WithoutCancel(ctx), userID, id); err != nil {
		s.log.WarnContext(ctx, "storing a user's click-to-call resource failed: the next call makes it again",
			"user_id", userID, "error", err)
	}
}
