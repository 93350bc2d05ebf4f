package fanout

import (
	"testing"

	"trunkline/event"
	"trunkline/identity"
)

func TestTokenRevokedDuringTheHandshakeIsNoticed(t *testing.T) {
	limits := newGatedLimits("u-shop")
	log, directory := newMemoryLog(1), newDirectory()
	n := startLimited(t, Config{Settings: Settings{MaxConnectionsPerUser: 10}}, log, directory, newPresence(), limits)
	before, during := directory.token("root", nil, nil), directory.token("shop", nil, nil)
	connected := n.dial(t, before, "")
	held := n.beginHandshake(limits, during)
	directory.edit(func() { directory.revoked[before], directory.revoked[during] = true, true })

	// the change has been applied to the connected subscribers
	if e := connected.closed(); e.Code != DisconnectAccessRevoked.Code {
		t.Errorf("connected subscriber: %v", e)
	}

	close(limits.open)
	if e := held.closed(t); e.Code != DisconnectAccessRevoked.Code {
		t.Errorf("subscriber in its handshake: %v", e)
	}

	eventually(t, "nobody is connected",
		func() bool { return n.subscribers.countConnected()+n.subscribers.countDisconnecting() == 0 })
}

func TestPermissionsReachOpenSockets(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	doomed := directory.token("root", nil, nil)
	revoked := n.dial(t, doomed, "")
	narrowed := n.dial(t, directory.token("shop", []string{"shop", "kiosk"}, nil), "")
	emptied := n.dial(t, directory.token("root", []string{"kiosk"}, nil), "")

	directory.edit(func() {
		directory.revoked[doomed] = true
		directory.tree = identity.NewTree(
			identity.Account{ID: "root", Name: "root", Domain: "root"},
			identity.Account{ID: "shop", Name: "shop", Domain: "shop", ParentID: "root"},
			identity.Account{ID: "kiosk", Name: "kiosk", Domain: "kiosk"})
	})

	if e := revoked.closed(); e.Code != DisconnectAccessRevoked.Code {
		t.Errorf("revoked token: %v", e)
	}
	if e := emptied.closed(); e.Code != DisconnectAccessRevoked.Code {
		t.Errorf("nothing left to see: %v", e)
	}

	log.put(0, "kiosk", event.QueueCall, 0)
	log.put(0, "shop", event.QueueCall, 1)
	if got := narrowed.numbers(1); got[0] != 1 {
		t.Errorf("narrowed subscriber got %v", got)
	}
}
