package api

import (
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/internal/limitprefix"
)

// bodyLimits bound the bodies of one kind of caller.
type bodyLimits struct {
	bytes  int64 // of a body
	depth  int   // of nested arrays and objects
	values int   // of one body; names are not counted, but are not more either

	heldBytes int64 // of all bodies that are being read or handled
	shares    int64 // one address or account may hold heldBytes/shares
}

// strangerLimits apply to callers who are not authenticated: anybody.
func strangerLimits() bodyLimits {
	return bodyLimits{bytes: 16 << 10, depth: 8, values: 2048, heldBytes: 8 << 20, shares: 4}
}

// callerLimits apply to authenticated callers.
func callerLimits() bodyLimits {
	return bodyLimits{bytes: 1 << 20, depth: maxNestingDepth, values: 50_000, heldBytes: 64 << 20, shares: 4}
}

const (
	firstReadBytes = 1 << 10
	// valueBytes is the memory that a value costs apart from its text: an entry of a list.
	valueBytes = 32
)

// bodyBudget counts the bytes that all bodies of one kind of caller hold.
type bodyBudget struct {
	limits bodyLimits

	mu        sync.Mutex
	heldBytes int64            // by all holders now
	holders   map[string]int64 // bytes held, by address or account
}

func newBodyBudget(limits bodyLimits) *bodyBudget {
	return &bodyBudget{limits: limits, holders: make(map[string]int64)}
}

// take counts n more bytes for the holder. It returns false, and counts nothing, if they
// exceed the budget or the holder's share.
func (b *bodyBudget) take(holder string, n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	share := b.limits.heldBytes / b.limits.shares
	if b.heldBytes+n > b.limits.heldBytes || b.holders[holder]+n > share {
		return false
	}
	b.heldBytes += n
	b.holders[holder] += n
	return true
}

func (b *bodyBudget) giveBack(holder string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heldBytes -= n
	b.holders[holder] -= n
	if b.holders[holder] == 0 {
		delete(b.holders, holder)
	}
}

// bodyLease has the bytes that one request holds of the budgets. It is used by the
// request's goroutine only.
type bodyLease struct {
	strangers, callers *bodyBudget
	taken              []takenBytes
}

// takenBytes are bytes that a holder has to give back to a budget.
type takenBytes struct {
	budget *bodyBudget
	holder string
	bytes  int64
}

// budgetOf returns the budget of the request, and the holder in it: the account of an
// authenticated caller, or else the address.
func (l *bodyLease) budgetOf(c echo.Context, caller *identity.Principal) (budget *bodyBudget, holder string) {
	if caller != nil {
		return l.callers, caller.AccountID
	}
	return l.strangers, limitprefix.Of(c.RealIP()).Host
}

// take returns fault.KindUnavailable if the budget does not have n bytes for the holder.
func (l *bodyLease) take(budget *bodyBudget, holder string, n int64) error {
	if !budget.take(holder, n) {
		return fault.Unavailable(nil, time.Second, "Too many requests with a body at once")
	}
	l.taken = append(l.taken, takenBytes{budget, holder, n})
	return nil
}

func (l *bodyLease) release() {
	for _, t := range l.taken {
		t.budget.giveBack(t.holder, t.bytes)
	}
	l.taken = nil
}

const contextBody = "body"

// withBodyLease lets the request's handler read a body within the budgets, and returns to
// them at its end what it took.
func (a *API) withBodyLease(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		lease := &bodyLease{strangers: a.strangers, callers: a.callers}
		defer lease.release()
		c.Set(contextBody, lease)
		return next(c)
	}
}
