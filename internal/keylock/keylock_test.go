package keylock

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestAKeyIsHeldByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var locks Locks
		var group sync.WaitGroup

		began, inside := time.Now(), map[string]int{}
		var mu sync.Mutex
		enter := func(key string, by int) int {
			mu.Lock()
			defer mu.Unlock()
			inside[key] += by
			return inside[key]
		}

		for i := range 10 {
			group.Go(func() {
				key := []string{"a", "b"}[i%2]
				unlock, err := locks.Lock(t.Context(), key)
				if err != nil {
					t.Error(err)
					return
				}
				defer unlock()

				if n := enter(key, 1); n != 1 {
					t.Errorf("%d hold %s", n, key)
				}

				time.Sleep(time.Second)
				enter(key, -1)
			})
		}

		group.Wait()
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("five holders of each of two keys took %v", took)
		}
		if len(locks.locks) != 0 {
			t.Errorf("locks left: %v", locks.locks)
		}
	})
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	var locks Locks
	unlock, err := locks.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	if _, err := locks.Lock(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("a held lock: %v", err)
	}

	unlock()
	if len(locks.locks) != 0 {
		t.Errorf("locks left: %v", locks.locks)
	}
}
