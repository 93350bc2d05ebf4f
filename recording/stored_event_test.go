package recording

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"trunkline/config/encryption"
	"trunkline/internal/testservice/testdb"
)

// Two nodes announce each stored recording once.
func TestStoredRecordingsAreAnnounced(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, h *env) {
		h.configure(t, "acme", encryption.Change{Enabled: true, Key: new(firstKey)})
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup

		for range 2 { // two nodes
			wg.Go(func() {
				if err := h.Run(ctx); err != nil {
					t.Error(err)
				}
			})
		}

		const n = 20
		for i := range n {
			checkError(t)(h.storeAudio("acme", fmt.Sprintf("call-%d", i), testAudio(10)))
		}

		for range n {
			select {
			case <-h.events.more:
			case <-time.After(time.Minute):
				t.Fatalf("only %d events", len(h.events.sent))
			}
		}

		stop()
		wg.Wait()
		seen := map[string]bool{}

		for _, text := range h.events.sent {
			var e map[string]any
			check(t, json.Unmarshal([]byte(text), &e))
			if e["event"] != "recording.stored" || e["account_id"] != "acme" || e["encrypted"] != true ||
				e["timestamp"] == nil || len(e) != 7 {
				t.Errorf("%s", text)
			}

			seen[e["recording_id"].(string)] = true
		}

		if len(h.events.sent) != n || len(seen) != n {
			t.Errorf("%d events of %d recordings", len(h.events.sent), len(seen))
		}
	})
}

func TestAnAnnouncementThatFailedIsMadeAgain(t *testing.T) {
	h := newEnv(t, Settings{}, testdb.SQLite(t))
	checkError(t)(h.storeAudio("acme", "call-1", testAudio(10)))
	h.events.fail = errors.New("kafka is away")
	if err := h.announce(t.Context()); !errors.Is(err, h.events.fail) {
		t.Fatal(err)
	}

	h.events.fail = nil
	check(t, h.announce(t.Context()))
	if len(h.events.sent) != 0 {
		t.Error("announced while another node may be doing it")
	}

	// After the end of the lease.
	checkError(t)(h.rows.db.ExecContext(t.Context(), `UPDATE recordings SET announce_after = announce_after - $1`,
		announceLease.Milliseconds()+1))
	check(t, h.announce(t.Context()))
	check(t, h.announce(t.Context()))

	if len(h.events.sent) != 1 {
		t.Errorf("%d events", len(h.events.sent))
	}
}
