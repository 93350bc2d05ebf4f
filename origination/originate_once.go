package origination

import (
	"context"
	"time"

	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/internal/retry"
)

// placeOnce places the order unless the key has been used. A repeated request places no call, is not
// counted against the limit, and gets the first response.
func (s *Service) placeOnce(ctx context.Context, caller *identity.Principal, destination, key string) (string, error) {
	var order Order
	admitted := false
	backoff := retry.Backoff{First: minCheckWait, Max: maxCheckWait}

	for {
		c, err := s.keys.find(ctx, caller.UserID, key, destination)
		// Before the claim, so that an order that is refused takes no key.
		if err == nil && !admitted && c == (keyState{destination: destination}) {
			order, err = s.admit(ctx, caller, destination)
			admitted = err == nil
		}
		if err == nil && admitted {
			c, err = s.keys.claim(ctx, caller.AccountID, caller.UserID, key, destination, order.ID, s.keyLease())
		}

		switch {
		case err != nil:
			return "", err
		case c.acquired:
			return s.placeWithKey(ctx, order, key)
		case c.destination != destination:
			return "", fault.Conflict("The Idempotency-Key was used for another destination")
		case c.done:
			return c.callID, nil
		}

		// Another request has claimed the key: this one waits for its response, or for its lease to expire.
		if !backoff.Wait(ctx) {
			return "", fault.Unavailable(ctx.Err(), time.Second,
				"Another request with this Idempotency-Key is under way")
		}
	}
}

// keyLease returns the longest time that placing an order can take.
func (s *Service) keyLease() time.Duration { return s.cfg.PlaceTimeout + 2*writeTimeout }

// placeWithKey places the order of a claimed key.
func (s *Service) placeWithKey(ctx context.Context, order Order, key string) (string, error) {
	ctx = context.WithoutCancel(ctx) // the key is completed or released even if the client disconnects
	callID, err := s.place(ctx, order)
	if err != nil {
		lost := s.keys.deleteUnplaced(ctx, order.ID, order.UserID, key)
		if lost != nil {
			s.log.WarnContext(ctx, "releasing an Idempotency-Key failed: it is free when its lease expires",
				"error", lost)
		}
		return "", err
	}

	lost := s.keys.complete(ctx, order.ID, order.UserID, key, callID)
	if lost != nil {
		s.log.WarnContext(ctx,
			"storing the response of an Idempotency-Key failed: a repeat is answered with its call", "error", lost)
	}

	return callID, nil
}
