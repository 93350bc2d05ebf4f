package fanout

import (
	"context"
	"maps"
	"slices"

	"trunkline/event"
	"trunkline/event/state"
)

// AgentsIn returns the agents of an account that are members of one of the queues, also those
// that are not logged in. It returns fault.KindUnavailable while the state is not read.
func (m *snapshots) AgentsIn(ctx context.Context, account string, queues []string) ([]string, error) {
	in := newIDSet(queues)
	entries, err := m.SearchEntries(ctx, account, func(e *state.Entry) bool {
		return e.Kind == state.Agent && e.AccountID == account && slices.ContainsFunc(e.Queues, in.has)
	})
	if err != nil {
		return nil, err
	}

	var found []string
	for _, e := range entries {
		found = append(found, e.ID)
	}

	slices.Sort(found)
	return found, nil
}

// FindEntries returns the state of those of the agents and calls that are an account's or of an account
// below it, up to maxSnapshotAge ago, also of calls that have ended. It returns
// fault.KindUnavailable while the state is not read. The entries must not be modified.
func (m *snapshots) FindEntries(ctx context.Context, account string,
	keys ...state.Key) (map[state.Key]*state.Entry, error) {
	found := make(map[state.Key]*state.Entry)
	if len(keys) == 0 {
		return found, nil
	}

	merged := newMergedEntries()
	merged.keys, merged.ended = keys, found
	_, err := m.collect(ctx, everythingOf(account), merged)
	if err != nil {
		return nil, err
	}

	maps.Copy(found, merged.live)
	return found, nil
}

// SearchEntries returns the state of the agents and calls of an account, and of those of the accounts
// below it, that want admits, as FindEntries does. Of calls that have ended want sees only the key, the
// event id and the state. It is called under a lock and must not call the node. It looks at all
// agents and calls, but copies none of them.
func (m *snapshots) SearchEntries(ctx context.Context, account string,
	want func(*state.Entry) bool) (map[state.Key]*state.Entry, error) {
	var keys []state.Key
	merged := newMergedEntries()
	merged.wants = func(e *state.Entry) bool {
		if want(e) {
			keys = append(keys, e.Key())
		}
		return false
	}

	_, err := m.collect(ctx, everythingOf(account), merged)
	if err != nil {
		return nil, err
	}

	// By their keys: the newest entry of one may be in another partition, and not be wanted.
	found, err := m.FindEntries(ctx, account, keys...)
	maps.DeleteFunc(found, func(_ state.Key, e *state.Entry) bool { return !want(e) })
	return found, err
}

// CallsInQueues returns the calls that are in a queue of the account, not of those below it, up to
// maxSnapshotAge ago. It returns fault.KindUnavailable while the state is not read. The entries
// must not be modified.
func (m *snapshots) CallsInQueues(ctx context.Context, account string) (calls []*state.Entry, err error) {
	merged := newMergedEntries()
	merged.wants = func(e *state.Entry) bool { return e.Kind == state.Call }
	_, err = m.collect(ctx, everythingOf(account), merged)
	for key, e := range merged.live {
		if key.Account == account && e.IsLiveVisit() {
			calls = append(calls, e)
		}
	}

	return calls, err
}

// CallsVersion returns a number that differs from earlier ones if what CallsInQueues returns for the account
// has changed since. It costs nothing, but follows the state only while CallsInQueues is called once in
// stateLinger.
func (m *snapshots) CallsVersion(account string) int64 { return m.states.versionOfCalls(account) }

// everythingOf returns the filter of all events of an account and of those below it.
func everythingOf(account string) *filter {
	return &filter{root: account, types: event.EveryType, names: event.EveryName}
}
