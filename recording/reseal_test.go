package recording

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"trunkline/config/encryption"
	"trunkline/internal/fault"
	"trunkline/internal/testservice/testdb"
)

// Recordings under an old key or another algorithm are sealed anew, plain ones stay plain, and all play meanwhile.
func TestResealMovesOldRecordingsWhileTheyArePlayed(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, h *env) {
		want := map[string][]byte{}
		for i, c := range []encryption.Change{
			{Enabled: true, Key: new(firstKey), Algorithm: new(encryption.AES256GCM)},
			{Enabled: true, Key: new(secondKey)},
			{Enabled: true, Algorithm: new(encryption.AES256CBC)},
			{Enabled: true, Key: new("the third key of this account, long enough")},
			{Enabled: false},
			{Enabled: true, Algorithm: new(encryption.AES256GCM)},
		} {
			h.configure(t, "acme", c)
			id := fmt.Sprintf("call-%d", i)
			want[id] = testAudio(70_000 * i)
			checkError(t)(h.storeAudio("acme", id, want[id]))
		}

		h.configure(t, "acme", encryption.Change{Enabled: false}) // old ones move all the same

		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}

				for id, audio := range want {
					if got, err := h.play("acme", id); err != nil || !bytes.Equal(got, audio) {
						t.Errorf("%s while it moves: %v", id, err)
					}
				}
			}
		})

		steps := 0
		got, err := h.Reseal(t.Context(), "", func(Progress) { steps++ })
		close(stop)
		wg.Wait()
		if err != nil || got != (Progress{Done: 4, Total: 4}) || steps != 4 {
			t.Errorf("%+v in %d steps: %v", got, steps, err)
		}

		for id, audio := range want {
			m := must(h.Metadata(t.Context(), "acme", id))(t)
			if m.Encrypted && (m.KeyVersion != 3 || m.Algorithm != encryption.AES256GCM) ||
				m.Encrypted == (id == "call-4") {
				t.Errorf("%+v", m)
			}
			if got, err := h.play("acme", id); err != nil || !bytes.Equal(got, audio) {
				t.Errorf("%s: %v", id, err)
			}
		}

		if objects := h.objects(t); len(objects) != 6 {
			t.Errorf("objects %v", objects)
		}
		if again, err := h.Reseal(t.Context(), "acme", func(Progress) {}); err != nil || again.Total != 0 {
			t.Errorf("again: %+v, %v", again, err)
		}
	})
}

// A damaged recording is counted and left as it was; the others are sealed anew.
func TestResealLeavesWhatItCannotMove(t *testing.T) {
	h := newEnv(t, Settings{}, testdb.SQLite(t))
	h.configure(t, "acme", encryption.Change{Enabled: true, Key: new(firstKey)})
	for i := range 3 {
		checkError(t)(h.storeAudio("acme", fmt.Sprintf("call-%d", i), testAudio(100)))
	}

	var bad string
	for _, file := range h.objects(t) {
		if strings.Contains(file, "call-1") {
			bad = file
		}
	}

	editFile(t, bad, func(b []byte) []byte { b[60] ^= 1; return b })
	h.configure(t, "acme", encryption.Change{Enabled: true, Key: new(secondKey)})
	got, err := h.Reseal(t.Context(), "", func(Progress) {})
	if fault.KindOf(err) != fault.KindInternal || got != (Progress{Done: 2, Failed: 1, Total: 3}) {
		t.Errorf("%+v, %v", got, err)
	}

	if _, err := os.Stat(bad); err != nil || len(h.objects(t)) != 3 {
		t.Errorf("%v, objects %v", err, h.objects(t))
	}
}
