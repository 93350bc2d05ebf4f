package envelope

import (
	"errors"
	"sync"
	"testing"
)

func TestRootsDeriveOncePerKeyAndForgetTheOldest(t *testing.T) {
	c, err := NewRoots(2)
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
	oldest := c.kept[c.name("b", "s", Iterations)]
	if _, err := c.Root("c", "s", Iterations); err != nil {
		t.Fatal(err)
	}
	if len(c.kept) != 2 || c.kept[c.name("a", "s", Iterations)] == nil || oldest.root != (Root{}) {
		t.Error("the root used longest ago should have been wiped and dropped")
	}
	c.Wipe()
	if len(c.kept) != 0 {
		t.Error("something is left after Wipe")
	}
}

func TestRootsShareTheWork(t *testing.T) {
	c, err := NewRoots(4)
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
	if c.uses != 8 || len(c.kept) != 1 || len(c.making) != 0 {
		t.Errorf("%d uses, %d kept, %d in the making", c.uses, len(c.kept), len(c.making))
	}
}

func TestKeyAndSaltAreNotRunTogether(t *testing.T) {
	c, err := NewRoots(1)
	if err != nil {
		t.Fatal(err)
	}
	if c.name("ab", "c", 1) == c.name("a", "bc", 1) || c.name("a", "b", 1) == c.name("a", "b", 2) {
		t.Error("different roots share a name")
	}
}

func TestIterationsAreBounded(t *testing.T) {
	for _, n := range []uint32{0, 1, minIterations - 1, maxIterations + 1, 1<<32 - 1} {
		if _, err := NewRoot("k", "s", n); !errors.Is(err, ErrVersion) {
			t.Errorf("%d iterations: %v", n, err)
		}
	}
}
