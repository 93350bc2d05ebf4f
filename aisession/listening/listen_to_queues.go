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
	retryPause    = 2 * time.Second        // until a call that could not be listened to is tried again
)

// QueueRuleStore has the queues that providers listen to; *aiprovider.Service implements it.
type QueueRuleStore interface {
	// ListRules returns the rules of all accounts.
	ListRules(ctx context.Context) ([]aiprovider.QueueRule, error)
}

// Roster has the state of calls.
type Roster interface {
	// CallsInQueues returns the calls that are in a queue of the account, not of those below it. They must not
	// be modified.
	CallsInQueues(ctx context.Context, account string) ([]*state.Entry, error)
	// CallsVersion returns a number that differs from earlier ones if what CallsInQueues returns has changed since. It
	// costs nothing, but is right only while CallsInQueues is called every now and then.
	CallsVersion(account string) int64
}

// QueueRulesDeps has the dependencies of QueueRules.
type QueueRulesDeps struct {
	Rules    QueueRuleStore
	Roster   Roster
	Platform aisession.Platform
	Log      *slog.Logger
}

// QueueRules has providers listen to the calls of their queues, from the moment that an agent talks with the caller. A
// call that could not be listened to is tried again while it lasts. Several nodes may run it: Platform.AddListener asks
// once.
type QueueRules struct {
	deps     QueueRulesDeps
	attempts map[listenedCall]*listenAttempts // of calls that are in a queue of a rule
	lastRead map[string]*accountCalls         // by account
}

// accountCalls are the calls in an account's queues when it had a version of its calls.
type accountCalls struct {
	version int64 // as returned by Roster.CallsVersion
	readAt  time.Time
	calls   []*state.Entry
}

// listenAttempts counts the tries to have a provider listen to a call.
type listenAttempts struct {
	listens   bool // the provider listens: no more tries
	tries     int
	nextTryAt time.Time
}

// listenedCall is a provider and a call of its queues.
type listenedCall struct {
	provider string
	call     state.Key
}

// NewQueueRules returns the rules, which Run follows.
func NewQueueRules(deps QueueRulesDeps) *QueueRules {
	return &QueueRules{deps: deps, attempts: make(map[listenedCall]*listenAttempts),
		lastRead: make(map[string]*accountCalls)}
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

// follow has providers listen to those calls of the rules' queues that they do not listen to yet.
func (r *QueueRules) follow(ctx context.Context, rules []aiprovider.QueueRule) {
	live := make(map[listenedCall]bool)
	read := make(map[string]*accountCalls) // by account, which may have several rules
	unread := make(map[string]bool)        // accounts, whose attempts are kept
	for _, rule := range rules {
		if unread[rule.AccountID] {
			continue
		}

		if read[rule.AccountID] == nil {
			found, err := r.readCalls(ctx, rule.AccountID)
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

			listened := listenedCall{rule.ProviderID, e.Key()}
			live[listened] = true
			if e.State == event.Talking {
				r.listenTo(ctx, listened)
			}
		}
	}

	r.lastRead = read
	for listened := range r.attempts {
		if !live[listened] && !unread[listened.call.Account] {
			delete(r.attempts, listened)
		}
	}
}

// readCalls returns the calls in an account's queues: those known, while none has changed, since an account may
// have thousands of agents and calls. They are read anew every now and then in any case, see Roster.
func (r *QueueRules) readCalls(ctx context.Context, account string) (*accountCalls, error) {
	// Before the calls: what changes while they are read is read again.
	version, now := r.deps.Roster.CallsVersion(account), time.Now()
	known := r.lastRead[account]
	if known != nil && known.version == version && now.Sub(known.readAt) < rulesInterval {
		return known, nil
	}

	calls, err := r.deps.Roster.CallsInQueues(ctx, account)
	if err != nil {
		return nil, err
	}

	return &accountCalls{version, now, calls}, nil
}

// listenTo has the provider listen to a call, unless it does.
func (r *QueueRules) listenTo(ctx context.Context, listened listenedCall) {
	attempts := r.attempts[listened]
	if attempts == nil {
		attempts = &listenAttempts{}
		r.attempts[listened] = attempts
	}
	if attempts.listens || time.Now().Before(attempts.nextTryAt) {
		return
	}

	call := aisession.PlatformCall{AccountID: listened.call.Account, ProviderID: listened.provider,
		Call: aiprotocol.Call{CallID: listened.call.ID}}
	err := r.deps.Platform.AddListener(ctx, call, aisession.ListenRequest{SessionID: uuid.NewString(), ByRule: true})
	attempts.tries++
	attempts.listens, attempts.nextTryAt = err == nil, time.Now().Add(retryPause)
	if err != nil && attempts.tries == 2 && ctx.Err() == nil { // at the first, the two may not be connected yet
		r.deps.Log.WarnContext(ctx, "an AI provider does not hear a call of its queues, retrying while the call lasts",
			"account_id", listened.call.Account, "provider_id", listened.provider, "call_id", listened.call.ID,
			"error", err)
	}
}
