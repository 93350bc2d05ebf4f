package feed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"trunkline/event/state"
)

// CheckResult has the findings of a check of a feed's platform. A step after one that failed is absent.
type CheckResult struct {
	OK           bool           `json:"ok"` // there is no problem
	Connected    bool           `json:"connected"`
	Subscription []string       `json:"subscription,omitempty"`
	State        *CheckedState  `json:"state,omitempty"`
	Event        *CheckedEvent  `json:"event,omitempty"` // the first; absent if none came while the check waited
	Problems     []CheckProblem `json:"problems,omitempty"`
}

// CheckedState counts what the platform has.
type CheckedState struct {
	Agents  int      `json:"agents"`
	Calls   int      `json:"calls"`
	Devices int      `json:"devices"`
	Notes   []string `json:"notes,omitempty"` // what the platform could not report
}

// CheckedEvent is an event of the platform. Without an account, Names are those that no rule maps.
type CheckedEvent struct {
	Format  string          `json:"format"`
	Account string          `json:"account_id,omitempty"`
	Names   []string        `json:"names,omitempty"`
	Value   json.RawMessage `json:"value,omitempty"`
}

// CheckProblem is why a feed does not work, and what to change in the platform's settings.
type CheckProblem struct {
	Message string `json:"message"`
	Advice  string `json:"advice,omitempty"`
}

// Check connects to the platform, reads its state and waits for an event. wait bounds each of the two: the
// connection, and state and event together. It changes nothing if cfg.SyncAccounts is false: only a feed that
// takes over the platform's accounts writes them.
func Check(ctx context.Context, cfg Config, platform Platform, directory Directory, wait time.Duration) *CheckResult {
	r := &CheckResult{}
	r.checkPlatform(ctx, cfg, platform, wait)
	r.checkAccounts(cfg, directory)
	r.OK = len(r.Problems) == 0
	return r
}

// checkPlatform connects, and reads the state and an event.
func (r *CheckResult) checkPlatform(ctx context.Context, cfg Config, platform Platform, wait time.Duration) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	// Not a timeout of the context: the session's reads go on under it after the connection.
	timer := time.AfterFunc(wait, func() { cancel(fmt.Errorf("no answer within %s", wait)) })
	session, err := platform.Connect(ctx)
	if !timer.Stop() && err == nil {
		err = errors.Join(context.Cause(ctx), session.Close())
	}
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		r.addProblem("connecting", err)
		return
	}

	r.Connected, r.Subscription = true, platform.Subscription()

	waitCtx, cancelWait := context.WithTimeout(ctx, wait)
	defer cancelWait()

	snapshotDone := make(chan error, 1)
	go func() {
		var err error
		r.State, err = countState(waitCtx, session)
		if err != nil {
			cancelWait() // the check does not wait for an event then
		}
		snapshotDone <- err
	}()

	// Read and Snapshot at the same time, as in a feed.
	first, err := firstEvent(waitCtx, session)
	snapshotErr := <-snapshotDone

	r.addProblem("closing the connection", session.Close())
	r.addProblem("reading the platform snapshot", snapshotErr)
	// No event while the check waited is no fault: the platform may be idle.
	if snapshotErr != nil || errors.Is(err, context.DeadlineExceeded) {
		return
	}

	r.addProblem("reading events", err)
	if err != nil {
		return
	}

	r.Event = &CheckedEvent{Format: first.Format, Account: first.Account}
	if first.Account == "" {
		r.Event.Names = first.Names
	}
	if json.Valid(first.Value) && utf8.Valid(first.Value) {
		r.Event.Value = first.Value
	}

	if cfg.Redundancy > 1 && !first.Identity.Valid() {
		r.addProblem("",
			fmt.Errorf("redundancy: %d needs events that the platform numbers, and this event has no number: "+
				"set redundancy: 1; one node at a time reads, and a resync corrects missed events", cfg.Redundancy))
	}
}

// addProblem adds an error, if there is one, with the advice of a refusal.
func (r *CheckResult) addProblem(step string, err error) {
	if err == nil {
		return
	}

	problem := CheckProblem{Message: err.Error()}
	if step != "" {
		problem.Message = step + ": " + problem.Message
	}
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		problem.Advice = refusal.Advice
	}

	r.Problems = append(r.Problems, problem)
}

// checkAccounts reports the accounts of the settings that the directory does not have.
func (r *CheckResult) checkAccounts(cfg Config, directory Directory) {
	names := []string{cfg.Account}
	for _, rule := range cfg.Accounts {
		names = append(names, rule.Account)
	}

	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if _, ok := directory.Resolve(name); !ok && name != "" {
			r.Problems = append(r.Problems, CheckProblem{
				Message: fmt.Sprintf("there is no account %q: its events become dead letters", name),
				Advice:  "trunkline account list shows the accounts, trunkline account create makes one",
			})
		}
	}
}

// countState reads the platform's state and counts its objects.
func countState(ctx context.Context, session Session) (*CheckedState, error) {
	snapshot, err := session.Snapshot(ctx)
	if err != nil {
		return nil, err
	}

	counts := map[state.Kind]int{}
	for _, object := range snapshot.Objects {
		counts[object.Kind]++
	}

	return &CheckedState{Agents: counts[state.Agent], Calls: counts[state.Call], Devices: counts[state.Device],
		Notes: snapshot.Notes}, nil
}

// firstEvent reads until there is an event that would be stored. Its Value is a copy, which stays valid after
// the next Read.
func firstEvent(ctx context.Context, session Session) (Event, error) {
	for {
		events, err := session.Read(ctx)
		if err != nil {
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			return Event{}, err
		}

		for _, e := range events {
			if e.Value != nil {
				e.Value = slices.Clone(e.Value)
				return e, nil
			}
		}
	}
}
