package origination

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

// A channel that fails every other time while a call always has steps to publish: each failure causes
// only the first pause, because a success came between.
func TestAFailureAfterASuccessIsTriedAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const successes, first = 10, 50 * time.Millisecond
		store := newCallStore(10, rows{}, nil, slog.New(slog.DiscardHandler))
		running, tries := true, 0
		began := time.Now()
		store.work(&running, func() bool { return tries < 2*successes }, func() error {
			tries++
			if tries%2 == 1 {
				return errors.New("no answer")
			}
			return nil
		})

		if took := time.Since(began); running || took < successes*first/2 || took > successes*first {
			t.Errorf("%d failures, each after a success, took %v, running %v", successes, took, running)
		}
	})
}

// While the database or Kafka is away each call fails again and again, which are not as many lines.
func TestAFaultOfAllCallsIsLoggedOnceInAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		store := newCallStore(10, rows{}, nil, slog.New(slog.NewTextHandler(&log, nil)))
		for range 1000 {
			store.warn(&store.storeWarning, "storing failed", errors.New("away"))
			store.warn(&store.publishWarning, "publishing failed", errors.New("away"))
			time.Sleep(5 * time.Millisecond)
		}

		stored, told := strings.Count(log.String(), "storing failed"), strings.Count(log.String(), "publishing failed")
		if stored != 3 || told != 3 {
			t.Errorf("%d and %d lines in five seconds", stored, told)
		}
	})
}

// Progress is read from the database: it goes on there while Kafka does not answer.
func TestStepsAreStoredWhileTheChannelHangs(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		d := newTestNode(t, at).run()
		asked, back := make(chan struct{}, 1), make(chan struct{})
		d.publishThrough(hanging{d.channel, asked, back})
		id := d.place("1002")
		<-asked
		d.platform.reportStates(id, RingingUser)
		d.awaitState(id, RingingUser)
		d.platform.reportStates(id, UserAnswered, Ended)
		d.awaitState(id, Ended)
		close(back)
		within(t, "the call is removed", func() bool { return d.calls.size() == 0 })
		if told := d.channel.publishedStates(id); len(told) != 4 {
			t.Errorf("told %v", told)
		}
	})
}

// hanging is a channel that says when it was asked, and answers only once it is back.
type hanging struct {
	Publisher
	asked, back chan struct{}
}

func (h hanging) Publish(ctx context.Context, events ...Event) error {
	select {
	case h.asked <- struct{}{}:
	default:
	}

	<-h.back
	return h.Publisher.Publish(ctx, events...)
}

// The database has the row and said that it failed: nothing rings, and the row goes.
func TestAnOrderWhoseStoringFailedLeavesNothing(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		d := newTestNode(t, at).run()
		there := row{Order: Order{ID: "late"}, Call: Call{ID: "late", State: Accepted}, Live: true}
		_, err := d.rows.insert(t.Context(), &there)
		mustSucceed(t, err)
		if err := d.placeUnread(); err == nil {
			t.Error("placed")
		}

		within(t, "nothing is left", func() bool {
			_, err := d.rows.find(t.Context(), "late")
			return fault.KindOf(err) == fault.KindNotFound && d.calls.size() == 0
		})
		if n := len(d.platform.placedOrders()); n != 0 {
			t.Errorf("%d calls rang", n)
		}
	})
}

func TestNothingIsPlacedAfterTheEnd(t *testing.T) {
	d := newTestNode(t, testdb.SQLite(t)).run()
	d.stop()
	err := d.placeUnread()
	if fault.KindOf(err) != fault.KindUnavailable || fault.As(err).Message != "Shutting down" {
		t.Errorf("placed: %v", err)
	}
	if n := len(d.platform.placedOrders()) + d.calls.size(); n != 0 {
		t.Errorf("%d calls", n)
	}
}

// A node loses a call, says something about it that is not stored yet, and takes it over again: what it
// had to say of its first time is not written over what happened meanwhile.
func TestACallThatComesBackIsAsItsRowSays(t *testing.T) {
	d := newTestNode(t, testdb.SQLite(t)).run()
	id := d.place("1002")
	d.calls.mu.Lock()
	before := d.calls.byCall[id]
	back := before.row
	d.calls.mu.Unlock()

	back.History = append([]Step{}, back.History...)
	back.advance(Progress{State: Dialling})
	d.calls.addAdopted([]row{back})
	d.calls.mu.Lock()
	before.advance(Progress{State: RingingUser})
	before.changes++
	d.calls.wake(before)
	d.calls.mu.Unlock()
	mustSucceed(t, d.calls.write(t.Context(), before))
	d.platform.reportStates(id, Bridged)
	d.awaitState(id, Bridged)
	call, err := d.Get(t.Context(), d.alice(), id)
	if err != nil || len(call.History) != 3 {
		t.Errorf("stored %v, %v", call, err)
	}
}
