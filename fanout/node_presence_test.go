package fanout

import (
	"testing"
	"time"
)

// A node without connections tells the others that it is there, well before they forget it, and no
// more.
func TestANodeWithoutConnectionsTellsLittle(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, f *Fanout, _ *memoryLog, gate chan struct{}, _ *memoryDirectory) {
		close(gate)
		presence := f.presence.(*sharedPresence)
		told := func() int {
			presence.mu.Lock()
			defer presence.mu.Unlock()
			return presence.published
		}

		time.Sleep(nodeTTL)
		before := told()
		time.Sleep(time.Minute)
		most, least := int(time.Minute/(renewEvery*presenceInterval))+1, int(2*time.Minute/nodeTTL)
		n := told() - before
		if n > most || n < least {
			t.Errorf("told %d times in a minute, want %d to %d times", n, least, most)
		}
	})
}
