package envelope

import (
	"sync"
	"testing"
)

func TestRootsDeriveOncePerKeyAndForgetTheOldest(t *testing.T) {
	c, err := NewRootCache(2)
	if err != nil {
		t.Fatal(err)
	}

	first, err := c.Root("a", "s", Iterations)
	if err != nil {
		t.Fatal(err)
	}

	want := *first
	first.Wipe()
	again, err := c.Root("a", "s", Iterations)
	if err != nil || *again != want {
		t.Fatalf("wiping a copy reached the cache: %v", err)
	}

	if _, err := c.Root("b", "s", Iterations); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Root("a", "s", Iterations); err != nil { // now b is the oldest
		t.Fatal(err)
	}

	oldest := c.roots[c.cacheKey("b", "s", Iterations)]
	if _, err := c.Root("c", "s", Iterations); err != nil {
		t.Fatal(err)
	}
	if len(c.roots) != 2 || c.roots[c.cacheKey("a", "s", Iterations)] == nil || oldest.root != (Root{}) {
		t.Error("the root used longest ago should have been wiped and dropped")
	}

	c.Wipe()
	if len(c.roots) != 0 {
		t.Error("something is left after Wipe")
	}
}

func TestRootsShareTheWork(t *testing.T) {
	c, err := NewRootCache(4)
	if err != nil {
		t.Fatal(err)
	}

	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := c.Root("k", "s", Iterations); err != nil {
				t.Error(err)
			}
		})
	}

	wg.Wait()
	if c.useCount != 8 || len(c.roots) != 1 || len(c.deriving) != 0 {
		t.Errorf("%d uses, %d kept, %d in the making", c.useCount, len(c.roots), len(c.deriving))
	}
}

func TestKeyAndSaltAreNotRunTogether(t *testing.T) {
	c, err := NewRootCache(1)
	if err != nil {
		t.Fatal(err)
	}
	if c.cacheKey("ab", "c", 1) == c.cacheKey("a", "bc", 1) || c.cacheKey("a", "b", 1) == c.cacheKey("a", "b", 2) {
		t.Error("different roots share a name")
	}
}
