package rounds

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhatComesDuringARoundIsDoneByTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran [][]int
		q := Queue[int]{Max: 3, Run: func(items []int) error {
			ran = append(ran, items)
			time.Sleep(time.Second)
			return nil
		}}

		first := q.Add(1)
		synctest.Wait()
		for i := 2; i <= 6; i++ {
			q.Add(i)
		}

		if err := first.Wait(t.Context()); err != nil {
			t.Error(err)
		}

		q.Settle()
		if !slices.EqualFunc(ran, [][]int{{1}, {2, 3, 4}, {5, 6}}, slices.Equal) {
			t.Errorf("rounds of %v", ran)
		}

		q.Settle() // nothing runs
	})
}

func TestARoundsErrorIsThatOfItsItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := errors.New("bad")
		q := Queue[bool]{Run: func(items []bool) error {
			time.Sleep(time.Second)
			if slices.Contains(items, true) {
				return bad
			}
			return nil
		}}

		first := q.Add(false)
		synctest.Wait()
		second, third := q.Add(true), q.Add(false)

		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()

		if err := q.Do(ctx, false); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller whose time is over: %v", err)
		}

		for i, want := range []error{nil, bad, bad} {
			if err := []*Round[bool]{first, second, third}[i].Wait(t.Context()); !errors.Is(err, want) {
				t.Errorf("round of item %d: %v, want %v", i, err, want)
			}
		}
	})
}

func TestAQueueRestsBetweenRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var began []time.Duration
		start := time.Now()
		q := Queue[int]{
			Run: func([]int) error {
				began = append(began, time.Since(start))
				time.Sleep(time.Second)
				return nil
			},
			Rest: func(took time.Duration) time.Duration { return 2 * took },
		}

		for range 2 {
			if err := q.Do(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
		}

		if !slices.Equal(began, []time.Duration{0, 3 * time.Second}) {
			t.Errorf("rounds began at %v", began)
		}

		q.Settle()
		time.Sleep(time.Minute)
		if err := q.Do(t.Context(), 0); err != nil || began[2] != 66*time.Second {
			t.Errorf("a rested queue began at %v: %v", began[2], err)
		}

		q.Settle()
	})
}
