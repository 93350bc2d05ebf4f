package fanout

import (
	"context"

	"trunkline/identity"
	"trunkline/internal/fault"
)

// followPermissions updates or disconnects subscribers when the account tree or a
// permission has changed.
func (f *Fanout) followPermissions(ctx context.Context) {
	for {
		// Before the permissions are read: a change that they miss ends the wait.
		changed := f.directory.Changed()
		f.applyPermissions()
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

func (f *Fanout) applyPermissions() {
	tree := f.directory.Tree()
	for _, s := range f.subscribers.listConnected() {
		f.applyPermission(s, tree)
	}
}

// applyPermission disconnects a subscriber whose token is no longer valid or whose
// accounts are no longer accessible. It replaces the filter if the tree has changed
// it.
func (f *Fanout) applyPermission(s *subscriber, tree *identity.Tree) {
	if err := f.auth.CheckPrincipal(s.principal); err != nil {
		reason := DisconnectAccessRevoked
		switch fault.KindOf(err) {
		case fault.KindUnauthenticated:
			reason = DisconnectTokenExpired
		case fault.KindUnavailable: // this node cannot check it; another may
			reason = DisconnectRestart
		}

		f.disconnect(s, reason)
		return
	}

	now := newFilter(s.principal, f.directory)
	switch {
	case now == nil:
		f.disconnect(s, DisconnectAccessRevoked)
	case !now.equal(s.filter.Load()):
		f.index.replaceFilter(s, now)
	}

	f.reconcile(s, tree)
}
