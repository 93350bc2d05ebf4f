package origination

import (
	"context"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/tracing"
)

// place stores the order, and only then lets the platform dial: a call that may
// ring is never unknown.
func (s *Service) place(ctx context.Context, order Order) (callID string, err error) {
	// A client that hangs up must not leave it open whether its call was placed.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.PlaceTimeout)
	defer cancel()
	ctx, span := s.tracer.Ask(ctx, "originate", tracing.Account(order.AccountID))
	defer func() { span.End(err) }()
	order.Trace = tracing.FromContext(ctx)
	written, err := s.book.open(order, time.Now())
	if err != nil {
		return "", err
	}
	if err := written.wait(ctx); err != nil {
		s.book.drop(order.ID)
		return "", err
	}
	placed, err := s.dial(ctx, order)
	if err != nil {
		s.book.drop(order.ID)
		return "", err
	}
	if !validID(placed.CallID) {
		placed.CallID = ""
	}
	if err := s.book.placed(order.ID, placed).wait(ctx); err != nil {
		// It rings, so it is answered for. The book goes on trying.
		s.log.WarnContext(ctx, "a call's id is not stored yet", "error", err)
	}
	return placed.CallID, nil
}

// dial has the platform place the order. A user's first one may make the
// platform's click-to-call resource: others of the user wait for it.
func (s *Service) dial(ctx context.Context, order Order) (Placed, error) {
	if order.ClickToCallID == "" {
		one := s.first.enter(order.UserID)
		defer s.first.leave(order.UserID, one)
		select {
		case one.turn <- struct{}{}:
			defer func() { <-one.turn }()
		case <-ctx.Done():
			return Placed{}, fault.Unavailable(ctx.Err(), time.Second, "The platform has not answered in time")
		}
		order.ClickToCallID = s.first.resource(order.UserID)
	}
	placed, err := s.driver.Originate(ctx, order)
	if !validID(placed.ClickToCallID) {
		placed.ClickToCallID = ""
	}
	if placed.ClickToCallID != "" { // also when it was made and the call then refused
		s.keepResource(ctx, order.UserID, placed.ClickToCallID)
	}
	return placed, err
}

// keepResource stores the resource that was made for the user. The call does
// not depend on it: what could not be stored is made again.
func (s *Service) keepResource(ctx context.Context, userID, id string) {
	s.first.keep(userID, id)
	if err := s.users.SetClickToCallID(context.WithoutCancel(ctx), userID, id); err != nil {
		s.log.WarnContext(ctx, "a user's click-to-call resource is made again next time: its id could not be stored", "user_id", userID, "error", err)
	}
}
