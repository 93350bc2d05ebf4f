package stats

import (
	"context"
	"testing"
)

// openRebuilds is a store with these requests.
type openRebuilds []Rebuild

func (o openRebuilds) ListOpen(context.Context) ([]Rebuild, error) { return o, nil }
func (o openRebuilds) Update(context.Context, Rebuild) error       { return nil }

func TestARequestWakesTheWorkerOfItsPartition(t *testing.T) {
	requests := &rebuildRequests{store: openRebuilds{{ID: "one", Partition: 1, State: RebuildOpen}}}
	woken := map[int]int{}
	for partition := range 2 {
		requests.setWake(partition, func() { woken[partition]++ })
	}

	if len(woken) > 0 {
		t.Fatalf("%v woken before there was a request", woken)
	}

	if err := requests.synchronize(t.Context()); err != nil {
		t.Fatal(err)
	}
	if woken[0] != 0 || woken[1] != 1 {
		t.Errorf("%v woken by a request for partition 1", woken)
	}

	requests.setWake(1, nil)
	if err := requests.synchronize(t.Context()); err != nil || woken[1] != 1 {
		t.Errorf("%v woken, %v, though the worker is not reading", woken, err)
	}

	requests.setWake(1, func() { woken[1]++ })
	if woken[1] != 2 {
		t.Error("a worker that starts to read is not woken by the request that is there")
	}
}
