package audit

import (
	"slices"
	"strings"
	"sync"
	"time"

	"trunkline/internal/fault"
)

const rateWindow = time.Minute

// actorRates counts the entries of each user and API key in the current minute, on this node.
// Everything that a credential can change is in the audit log, so this bounds how fast one
// can fill the disk.
type actorRates struct {
	mu     sync.Mutex
	window time.Time      // begin of the current minute
	counts map[string]int // entries by actor, refusals under "refused " and the actor
}

// add counts n entries of an actor. It returns the time until the next minute, and counts
// nothing, if the actor then had more than limit; else 0.
func (r *actorRates) add(actor string, n, limit int, now time.Time) (wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()

	window := now.Truncate(rateWindow)
	if !window.Equal(r.window) {
		r.window, r.counts = window, make(map[string]int)
	}
	if r.counts[actor]+n > limit {
		return r.window.Add(rateWindow).Sub(now)
	}

	r.counts[actor] += n
	return 0
}

// unlimited are the actions by which a user ends what somebody else does with a stolen
// session, which would otherwise use up the user's rate. Logins have limits of their own.
var unlimited = []Action{Login, Logout, PasswordUpdate, OTPEnrol}

// limitActors counts entries that their actors can cause. Returns fault.KindLimited for an
// actor that had too many in this minute. Refusals are counted apart from requests: some, as
// locked logins, are caused by others than the actor.
func (l *Log) limitActors(entries []Entry, refusals bool) error {
	for _, e := range entries {
		limit := 0
		switch {
		case slices.Contains(unlimited, e.Action):
			continue
		case strings.HasPrefix(e.Actor, actorUser):
			limit = l.settings.UserEntriesPerMinute
		case strings.HasPrefix(e.Actor, actorKey):
			limit = l.settings.KeyEntriesPerMinute
		default: // commands, the server itself and phones
			continue
		}

		counted := e.Actor
		if refusals {
			counted = "refused " + e.Actor
		}

		wait := l.rates.add(counted, 1, limit, l.now())
		if wait > 0 {
			return fault.Limited(wait, "Too many requests that are written to the audit log")
		}
	}

	return nil
}
