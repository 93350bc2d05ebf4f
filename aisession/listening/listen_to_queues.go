package listening

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"trunkline/aisession"
	"trunkline/config/aiprovider"
	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/aiprotocol"
	"trunkline/internal/retry"
)

const (
	rulesInterval = 5 * time.Second        // between two readings of the rules
	callsInterval = 500 * time.Millisecond // between two looks at the calls, while there are rules
	againAfter    = 2 * time.Second        // until a call that could not be heard is tried again
)

// QueueRuleStore has the queues that providers hear; *aiprovider.Service implements it.
type QueueRuleStore interface {
	// ListRules returns the rules of all accounts.
	ListRules(ctx context.Context) ([]aiprovider.QueueRule, error)
}

// Roster has the state of calls.
type Roster interface {
	// Visits returns the calls that are in a queue of the account, not of those below it. They must not be modified.
	Visits(ctx context.Context, account string) ([]*state.Entry, error)
	// CallVersion returns a number that differs from earlier ones if what Visits returns has changed since. It
	// costs nothing, but is right only while Visits is called every now and then.
	CallVersion(account string) int64
}

// QueueRulesDeps has the dependencies of QueueRules.
type QueueRulesDeps struct {
	Rules    QueueRuleStore
	Roster   Roster
	Platform aisession.Platform
	Log      *slog.Logger
}

// QueueRules has providers hear the calls of their queues, from the moment that an agent talks with the caller. A call
// that could not be heard is tried again while it lasts. Several nodes may run it: Platform.HearCall asks once.
type QueueRules struct {
	deps  QueueRulesDeps
	heard map[heardQueueCall]*hearAttempts
	known map[string]*accountCalls // by account
}

// accountCalls are the calls in an account's queues when it had a version of its calls.
type accountCalls struct {
	version int64
	readAt  time.Time
	calls   []*state.Entry
}

// hearAttempts counts the tries to have a call heard.
type hearAttempts struct {
	heard bool
	tries int
	again time.Time // of the next try
}

// heardQueueCall is a provider and a call of its queues.
type heardQueueCall struct {
	provider string
	call     state.Key
}

// NewQueueRules returns the rules, which Run follows.
func NewQueueRules(deps QueueRulesDeps) *QueueRules {
	return &QueueRules{deps: deps, heard: make(map[heardQueueCall]*hearAttempts), known: make(map[string]*accountCalls)}
}

// Run follows the rules until ctx ends.
func (r *QueueRules) Run(ctx context.Context) error {
	var rules []aiprovider.QueueRule
	var readAt time.Time
	for ctx.Err() == nil {
		if time.Since(readAt) >= rulesInterval {
			readAt = time.Now() // also if it fails: the rules of before hold until the next reading
			found, err := r.deps.Rules.ListRules(ctx)
			switch {
			case err == nil:
				rules = found
			case ctx.Err() == nil:
				r.deps.Log.WarnContext(ctx, "the queues that AI providers hear are not known, retrying", "error", err)
			}
		}

		r.follow(ctx, rules)
		pause := callsInterval
		if len(rules) == 0 {
			pause = rulesInterval
		}

		retry.Sleep(ctx, pause)
	}

	return nil
}

// follow has the calls of the rules' queues heard that are not yet.
func (r *QueueRules) follow(ctx context.Context, rules []aiprovider.QueueRule) {
	live := make(map[heardQueueCall]bool)
	read := make(map[string]*accountCalls) // by account, which may have several rules
	unread := make(map[string]bool)        // accounts, of which what is heard is kept
	for _, rule := range rules {
		if unread[rule.AccountID] {
			continue
		}

		if read[rule.AccountID] == nil {
			found, err := r.readVisits(ctx, rule.AccountID)
			if err != nil {
				if ctx.Err() == nil {
					r.deps.Log.WarnContext(ctx, "the calls that an AI provider hears are not known, retrying",
						"account_id", rule.AccountID, "error", err)
				}

				unread[rule.AccountID] = true
				continue
			}

			read[rule.AccountID] = found
		}

		for _, e := range read[rule.AccountID].calls {
			if !slices.Contains(rule.Queues, e.QueueID) {
				continue
			}

			h := heardQueueCall{rule.ProviderID, e.Key()}
			live[h] = true
			if e.State == event.Talking {
				r.hear(ctx, h)
			}
		}
	}

	r.known = read
	for h := range r.heard {
		if !live[h] && !unread[h.call.Account] {
			delete(r.heard, h)
		}
	}
}

// readVisits returns the calls in an account's queues: those known, while none has changed, since an account may
// have thousands of agents and calls. They are read anew every now and then in any case, see Roster.
func (r *QueueRules) readVisits(ctx context.Context, account string) (*accountCalls, error) {
	// Before the calls: what changes while they are read is read again.
	version, now := r.deps.Roster.CallVersion(account), time.Now()
	known := r.known[account]
	if known != nil && known.version == version && now.Sub(known.readAt) < rulesInterval {
		return known, nil
	}

	calls, err := r.deps.Roster.Visits(ctx, account)
	if err != nil {
		return nil, err
	}

	return &accountCalls{version, now, calls}, nil
}

// hear has a call heard, unless it is.
func (r *QueueRules) hear(ctx context.Context, h heardQueueCall) {
	a := r.heard[h]
	if a == nil {
		a = &hearAttempts{}
		r.heard[h] = a
	}
	if a.heard || time.Now().Before(a.again) {
		return
	}

	call := aisession.PlatformCall{AccountID: h.call.Account, ProviderID: h.provider,
		Call: aiprotocol.Call{CallID: h.call.ID}}
	err := r.deps.Platform.HearCall(ctx, call, aisession.HearRequest{SessionID: uuid.NewString(), ByRule: true})
	a.tries++
	a.heard, a.again = err == nil, time.Now().Add(againAfter)
	if err != nil && a.tries == 2 && ctx.Err() == nil { // at the first, the two may not be connected yet
		r.deps.Log.WarnContext(ctx, "an AI provider does not hear a call of its queues, retrying while the call lasts",
			"account_id", h.call.Account, "provider_id", h.provider, "call_id", h.call.ID, "error", err)
	}
}
