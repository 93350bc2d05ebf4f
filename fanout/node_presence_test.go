package fanout

import (
	"testing"
	"time"

	"trunkline/identity"
)

// A node without connections tells the others that it is there, well before they forget it, and no
// more.
func TestANodeWithoutConnectionsTellsLittle(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, f *Fanout, _ *memoryLog, gate chan struct{}, _ *memoryDirectory) {
		close(gate)
		presence := f.presence.(*sharedPresence)
		published := func() int {
			presence.mu.Lock()
			defer presence.mu.Unlock()
			return presence.published
		}

		time.Sleep(nodeTTL)
		before := published()
		time.Sleep(time.Minute)
		most, least := int(time.Minute/(renewEvery*presenceInterval))+1, int(2*time.Minute/nodeTTL)
		n := published() - before
		if n > most || n < least {
			t.Errorf("told %d times in a minute, want %d to %d times", n, least, most)
		}
	})
}

func TestHealthAndStatsCoverTheCluster(t *testing.T) {
	log, directory, presence := newMemoryLog(1), newDirectory(), newPresence()
	a := startNode(t, Config{NodeID: "a"}, log, directory, presence, false)
	b := startNode(t, Config{NodeID: "b"}, log, directory, presence, false)
	a.dial(t, directory.token("root", nil, nil), "")
	b.dial(t, directory.token("shop", nil, nil), "")
	other := b.dial(t, directory.token("other", nil, nil), "")

	eventually(t, "both nodes count three", func() bool {
		_, here := a.Health(t.Context())
		_, there := b.Health(t.Context())
		return here == 3 && there == 3
	})

	if clients := a.Stats(t.Context(), &identity.Principal{AccountID: "root"}); len(clients) != 2 {
		t.Errorf("root sees %+v", clients)
	}

	_ = other.ws.Close()
	eventually(t, "the count follows", func() bool { _, n := a.Health(t.Context()); return n == 2 })
	presence.mu.Lock()
	presence.down = true
	presence.mu.Unlock()

	eventually(t, "without shared state the node counts itself", func() bool {
		status, n := a.Health(t.Context())
		return status == StatusDegraded && n == 1
	})

	presence.mu.Lock()
	presence.down = false
	presence.nodes = make(map[string]map[string]Client) // it began anew
	presence.mu.Unlock()

	eventually(t, "the shared state is filled again", func() bool {
		status, n := a.Health(t.Context())
		return status == StatusOK && n == 2
	})
}
