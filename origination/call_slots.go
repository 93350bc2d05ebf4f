package origination

import (
	"context"
	"maps"
	"slices"
	"time"

	"trunkline/internal/fault"
)

// Slot is the share of the limits that one call in progress holds.
type Slot struct{ CallID, AccountID, UserID string }

// Slots counts the calls in progress of all nodes. A slot expires unless it is renewed.
type Slots interface {
	// Acquire takes a slot unless the user has userMax or the account accountMax calls; 0 means no limit.
	// Otherwise it returns the reason.
	Acquire(ctx context.Context, slot Slot, userMax, accountMax int) (reason Reason, err error)
	// Renew keeps slots for another of their lifetimes. It takes those again that have expired.
	Renew(ctx context.Context, slots []Slot) error
	// Release gives slots back. One that does not exist is no error.
	Release(ctx context.Context, slots []Slot) error
}

const (
	slotTTL     = 30 * time.Second // after the last renewal
	slotRenewal = 10 * time.Second // interval
	slotTimeout = time.Second      // of one request to Slots
)

// Acquire adds a call to the calls in progress, until Release. The error is fault.Limited if the user or
// the account has too many.
func (a *Admission) Acquire(ctx context.Context, attempt Attempt) error {
	slot := Slot{attempt.CallID, attempt.AccountID, attempt.UserID}
	reason := a.acquireLocal(slot)
	if reason == "" && a.deps.Slots != nil {
		bounded, cancel := context.WithTimeout(ctx, slotTimeout)
		defer cancel()

		var err error
		reason, err = a.deps.Slots.Acquire(bounded, slot, a.cfg.UserCalls, a.cfg.AccountCalls)
		if err != nil {
			a.deps.Log.WarnContext(ctx, "counting calls in progress failed, counted on this node only", "error", err)
		}

		if reason != "" {
			a.Forget(slot.CallID)
		}
	}

	if reason != "" {
		return a.refuse(ctx, attempt, reason, fault.Limited(time.Second, "Too many calls at once"))
	}

	return nil
}

// acquireLocal adds a slot to heldSlots unless the user or the account has too many calls on this node alone.
func (a *Admission) acquireLocal(slot Slot) (reason Reason) {
	a.mu.Lock()
	defer a.mu.Unlock()

	userCalls, accountCalls := 0, 0
	for _, other := range a.heldSlots {
		if other.AccountID == slot.AccountID {
			accountCalls++
			if other.UserID == slot.UserID {
				userCalls++
			}
		}
	}

	switch {
	case a.cfg.UserCalls > 0 && userCalls >= a.cfg.UserCalls:
		return ReasonUserCalls
	case a.cfg.AccountCalls > 0 && accountCalls >= a.cfg.AccountCalls:
		return ReasonAccountCalls
	}

	a.heldSlots[slot.CallID] = slot
	return ""
}

// AddTakenOver adds the slot of a call that this node has taken over.
func (a *Admission) AddTakenOver(slot Slot) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.heldSlots[slot.CallID] = slot
}

// Forget removes a call from those in progress of this node, and releases nothing in Slots: they have refused it, or
// its slot there is that of the node which has taken the call over.
func (a *Admission) Forget(callID string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.heldSlots, callID)
}

// Release removes a call from the calls in progress. It does not block, and may be called more than once.
func (a *Admission) Release(callID string) {
	a.mu.Lock()
	slot, ok := a.heldSlots[callID]
	if ok {
		delete(a.heldSlots, callID)
		a.releasedSlots = append(a.releasedSlots, slot)
	}
	a.mu.Unlock()

	if ok {
		select {
		case a.wake <- struct{}{}:
		default:
		}
	}
}

// Run releases and renews slots until ctx ends, and then releases those of calls for which Release was
// called.
func (a *Admission) Run(ctx context.Context) error {
	renew := time.NewTicker(slotRenewal)
	defer renew.Stop()

	for {
		select {
		case <-ctx.Done():
			a.releaseSlots(context.WithoutCancel(ctx))
			return nil
		case <-a.wake:
			a.releaseSlots(ctx)
		case <-renew.C:
			a.renewSlots(ctx)
		}
	}
}

func (a *Admission) releaseSlots(ctx context.Context) {
	a.mu.Lock()
	released := a.releasedSlots
	a.releasedSlots = nil
	a.mu.Unlock()

	if len(released) == 0 || a.deps.Slots == nil {
		return
	}

	bounded, cancel := context.WithTimeout(ctx, slotTimeout)
	defer cancel()

	err := a.deps.Slots.Release(bounded, released)
	if err != nil && ctx.Err() == nil {
		a.deps.Log.WarnContext(ctx, "releasing calls in progress failed, they expire", "error", err)
	}
}

func (a *Admission) renewSlots(ctx context.Context) {
	a.mu.Lock()
	held := slices.Collect(maps.Values(a.heldSlots))
	a.mu.Unlock()

	if len(held) == 0 || a.deps.Slots == nil {
		return
	}

	bounded, cancel := context.WithTimeout(ctx, slotTimeout)
	defer cancel()

	err := a.deps.Slots.Renew(bounded, held)
	if err != nil && ctx.Err() == nil {
		a.deps.Log.WarnContext(ctx, "renewing calls in progress failed", "error", err)
	}
}
