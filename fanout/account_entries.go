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
	entries, err := m.Entries(ctx, account)
	if err != nil {
		return nil, err
	}

	in := newIDSet(queues)
	var found []string
	for key, e := range entries {
		if key.Kind == state.Agent && key.Account == account && slices.ContainsFunc(e.Queues, in.has) {
			found = append(found, e.ID)
		}
	}

	slices.Sort(found)
	return found, nil
}

// Entries returns the state of an account's agents and calls, and of those of the accounts
// below it, up to maxSnapshotAge ago. It returns fault.KindUnavailable while the state is
// not read. The entries must not be modified.
func (m *snapshots) Entries(ctx context.Context, account string) (map[state.Key]*state.Entry, error) {
	merged := newMergedEntries()
	merged.ended = make(map[state.Key]*state.Entry)
	_, err := m.collect(ctx, everythingOf(account), merged)
	maps.Copy(merged.ended, merged.live)
	return merged.ended, err
}

// CallsInQueues returns the calls that are in a queue of the account, not of those below it, up to
// maxSnapshotAge ago. It returns fault.KindUnavailable while the state is not read. The entries
// must not be modified.
func (m *snapshots) CallsInQueues(ctx context.Context, account string) (calls []*state.Entry, err error) {
	merged := newMergedEntries()
	merged.onlyKind = state.Call
	_, err = m.collect(ctx, everythingOf(account), merged)
	for key, e := range merged.live {
		if key.Account == account && e.IsVisit() {
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
