package kafka_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"trunkline/event/topics"
)

func TestReadEndsWithItsContext(t *testing.T) {
	c, _ := openBoth(t)
	ensure(t, c, topics.Spec{Name: "t", Partitions: 1})
	r := c.NewReader("t", 0, 0)

	ctx, cancel := context.WithCancel(t.Context())
	cancelled := make(chan error)
	go func() {
		_, err := r.Read(ctx)
		cancelled <- err
	}()
	cancel()

	if err := <-cancelled; err != context.Canceled {
		t.Errorf("got %v", err)
	}

	produce(t, c, numbered(0, 0, 1)...)
	if records, err := r.Read(t.Context()); err != nil || len(records) != 1 {
		t.Errorf("afterwards: %v, %v", records, err)
	}
}

func TestReadThatWasCancelledLosesNothing(t *testing.T) {
	c, _, _ := openFakeWith(t, 1)
	r := c.NewReader("t", 0, 0)
	defer r.Close()

	var got int64
	for i := range 200 {
		produce(t, c, numbered(0, i, 1)...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%3)*time.Millisecond)
		records, err := r.Read(ctx)
		cancel()

		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}

		for j := range records {
			if records[j].Offset != got {
				t.Fatalf("offset %d, want %d", records[j].Offset, got)
			}
			got++
		}
	}

	for got < 200 {
		records, err := r.Read(t.Context())
		if err != nil || records[0].Offset != got {
			t.Fatalf("%v, %v", records, err)
		}
		got += int64(len(records))
	}
}
