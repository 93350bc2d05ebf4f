package origination

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice"
	"trunkline/internal/testservice/testdb"
)

// Many concurrent calls, on a platform that reports everything late, early and twice, and a channel
// that fails every other time: each call's steps are published in order, none is missing, and the
// stored steps are the same.
func TestManyCallsAtOnce(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		d := newTestNode(t, at).run()
		d.publishThrough(&flaky{Publisher: d.channel})

		var says sync.WaitGroup
		d.platform.onOriginate = func(o Order) (Placed, error) {
			says.Go(func() {
				for i := 1; i < len(states); i++ {
					for range rand.IntN(3) {
						d.platform.reportStates("p-"+o.ID, states[rand.IntN(i)])
					}
					d.platform.reportStates("p-"+o.ID, states[i])
					time.Sleep(time.Duration(rand.IntN(int(5 * time.Millisecond))))
				}
			})

			return Placed{CallID: "p-" + o.ID}, nil
		}

		var placed sync.WaitGroup
		ids := make([]string, 200)
		for i := range ids {
			placed.Go(func() { ids[i] = d.place("1002") })
		}

		placed.Wait()
		says.Wait()
		within(t, "all is stored and told", func() bool { return d.calls.size() == 0 })

		for _, id := range ids {
			call, err := d.Get(t.Context(), d.alice(), id)
			mustSucceed(t, err)
			if got := firstTold(d.channel.publishedStates(id)); !slices.Equal(got, states[:]) ||
				!slices.Equal(statesOf(call.History), states[:]) {
				t.Errorf("told %v, stored %v", got, statesOf(call.History))
			}
		}
	})
}

// firstTold leaves repeats out.
func firstTold(told []State) (first []State) {
	for _, state := range told {
		if !slices.Contains(first, state) {
			first = append(first, state)
		}
	}
	return first
}

// flaky fails every other time, sometimes although it has published; not more
// than three times in a row, for each time the next try comes later.
type flaky struct {
	Publisher
	mu     sync.Mutex
	failed int // in a row
}

func (f *flaky) Publish(ctx context.Context, events ...Event) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed++
	lost := errors.New("no answer")
	switch how := rand.IntN(4); {
	case f.failed > 3 || how > 1:
		f.failed = 0
		return f.Publisher.Publish(ctx, events...)
	case how == 1:
		return errors.Join(f.Publisher.Publish(ctx, events...), lost)
	}

	return lost
}

func TestWhileTheDatabaseIsAway(t *testing.T) {
	server := testservice.OwnPostgres(t)
	d := newTestNode(t, sqldb.Config{URL: server.URL},
		func(c *Config) { c.PlaceTimeout = 500 * time.Millisecond; c.Lease = time.Minute }).run()
	id := d.place("1002")
	d.platform.reportStates(id, RingingUser)
	d.awaitState(id, RingingUser)
	server.Kill(t)
	_, err := d.Originate(t.Context(), d.alice(), "1002", "")
	if kind := fault.KindOf(err); kind != fault.KindInternal { // the user document cannot be read
		t.Errorf("placed: %v", err)
	}
	if err := d.placeUnread(); fault.KindOf(err) != fault.KindUnavailable {
		t.Errorf("placed: %v", err)
	}

	d.platform.reportStates(id, UserAnswered, Dialling, Ended)
	server.Start(t)
	within(t, "the steps of meanwhile are stored and told", func() bool {
		return slices.Equal(firstTold(d.channel.publishedStates(id)),
			[]State{Accepted, RingingUser, UserAnswered, Dialling, Ended}) && d.calls.size() == 0
	})

	if n := len(d.platform.placedOrders()); n != 1 {
		t.Errorf("%d calls rang", n)
	}
}

func (d *testNode) publishThrough(p Publisher) {
	d.calls.mu.Lock()
	defer d.calls.mu.Unlock()
	d.calls.publisher = p
}

// placeUnread places an order that was made before the database went away.
func (d *testNode) placeUnread() error {
	_, err := d.Service.place(context.Background(),
		Order{ID: "late", AccountID: "demo", UserID: d.users.alice, Extension: "1001", Destination: "1002"})
	return err
}

func TestStepsAreToldWhenTheChannelIsBack(t *testing.T) {
	d := newTestNode(t, testdb.SQLite(t)).run()
	d.channel.failWith(errors.New("kafka is away"))
	id := d.place("1002")
	d.platform.reportStates(id, RingingUser, UserAnswered, Ended)
	d.awaitState(id, Ended)

	if d.calls.size() != 1 {
		t.Error("the call was removed before it was announced")
	}

	d.channel.failWith(nil)
	want := []State{Accepted, RingingUser, UserAnswered, Ended}
	within(t, "the steps are told",
		func() bool { return slices.Equal(d.channel.publishedStates(id), want) && d.calls.size() == 0 })
	last := d.channel.sent[len(d.channel.sent)-1]
	if last.Event != "call.progress" || last.AccountID != "demo" || last.Cause != "NORMAL_CLEARING" ||
		last.UserID != d.users.alice ||
		last.Timestamp < time.Now().Unix()-60 {
		t.Errorf("told %+v", last)
	}
}
