package simulator

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event"
	"trunkline/internal/fault"
	"trunkline/origination"
)

// followedSimulator is a simulator that is being followed, in a synctest bubble.
type followedSimulator struct {
	*Simulator
	t     *testing.T
	kafka *fakeTopics
	stop  func()

	mu    sync.Mutex
	steps []origination.Progress
}

func newStage(t *testing.T, open ...origination.OpenCall) *followedSimulator {
	t.Helper()
	s := &followedSimulator{t: t, kafka: &fakeTopics{}}
	var err error
	s.Simulator, err = New(Config{MaxCalls: 3}, s.kafka, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- s.Follow(ctx, open, func(p origination.Progress) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.steps = append(s.steps, p)
		})
	}()

	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})

	t.Cleanup(s.stop)
	return s
}

func (s *followedSimulator) place(destination string) (id string) {
	s.t.Helper()
	o := order(destination)
	var err error
	o.ID, err = s.Name(s.t.Context(), o)
	if err != nil {
		s.t.Fatal(err)
	}

	placed, err := s.Originate(s.t.Context(), o)
	if err != nil || placed.CallID != "sim-o-"+destination || !Simulated(placed.CallID) {
		s.t.Fatalf("%+v, %v", placed, err)
	}

	return placed.CallID
}

func order(destination string) origination.Order {
	return origination.Order{ID: "o-" + destination, InteractionID: "63954441200-0a1b2c3d", AccountID: "demo",
		Domain: "demo.local",
		UserID: "u", Extension: "1001", Destination: destination}
}

// course has the reported states with milliseconds since begun, and the cause.
func (s *followedSimulator) course(begun time.Time) (course []step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.steps {
		course = append(course, step{p.State, p.At.Sub(begun), p.Cause})
	}
	return course
}

// fakeTopics stores the published records.
type fakeTopics struct {
	mu     sync.Mutex
	away   bool
	rows   []event.CDR
	events []channelEvent
}

// panickingTopics are topics that panic.
type panickingTopics struct{ fakeTopics }

func (*panickingTopics) PublishEvent(context.Context, string, []byte) error { panic("kafka") }

// A panic in one simulated call ends that call.
func TestAPanicEndsOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.records = &panickingTopics{}
		s.place("1002")
		time.Sleep(time.Minute)
		steps := s.course(time.Now())
		if last := steps[len(steps)-1]; last.state != origination.Ended || last.cause != origination.CauseLost {
			t.Errorf("got %+v", steps)
		}
	})
}

var errAway = errors.New("kafka is away")

func (k *fakeTopics) PublishCDR(_ context.Context, account string, row event.CDR) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.away || account != row.AccountID {
		return errAway
	}
	k.rows = append(k.rows, row)
	return nil
}

func (k *fakeTopics) PublishEvent(_ context.Context, account string, data []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var e channelEvent
	if err := json.Unmarshal(data, &e); err != nil || k.away || account != e.AccountID {
		return errors.Join(errAway, err)
	}
	k.events = append(k.events, e)
	return nil
}

func (k *fakeTopics) setAway(away bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.away = away
}

// published returns the published records and events once all goroutines are blocked.
func (k *fakeTopics) published() (got struct {
	rows   []event.CDR
	events []channelEvent
}) {
	synctest.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	got.rows, got.events = slices.Clone(k.rows), slices.Clone(k.events)
	return got
}

// leg returns the record of a leg. name is o, l or d (owner, loopback, destination) before the call's destination.
func (k *fakeTopics) leg(t *testing.T, name string) event.CDR {
	t.Helper()
	for _, row := range k.published().rows {
		if row.CallID == (&call{id: "sim-o-" + name[1:]}).leg(
			map[byte]string{'o': legOwner, 'l': legLoopback, 'd': legDestination}[name[0]]) {
			return row
		}
	}
	t.Fatalf("no leg %s", name)
	return event.CDR{}
}

const ms = time.Millisecond

func TestACallsCourse(t *testing.T) {
	begin := []step{{origination.RingingUser, 0, ""}, {origination.UserAnswered, 300 * ms, ""},
		{origination.Dialling, 300 * ms, ""}}
	for destination, end := range map[string][]step{
		"1002":   {{origination.Bridged, 900 * ms, ""}, {origination.Ended, 2900 * ms, "NORMAL_CLEARING"}},
		"+43123": {{origination.Bridged, 900 * ms, ""}, {origination.Ended, 2900 * ms, "NORMAL_CLEARING"}},
		"9901":   {{origination.Ended, 900 * ms, "USER_BUSY"}},
		"9902":   {{origination.Ended, 900 * ms, "CALL_REJECTED"}},
		"9903":   {{origination.Ended, 3300 * ms, "NO_ANSWER"}},
	} {
		t.Run(destination, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, begun := newStage(t), time.Now()
				s.place(destination)
				time.Sleep(5 * time.Second)

				if got := s.course(begun); !slices.Equal(got, append(slices.Clone(begin), end...)) {
					t.Errorf("got %v", got)
				}

				destinationLeg := s.kafka.leg(t, "d"+destination)
				if bridged := len(end) == 2; (destinationLeg.AnsweredTime != 0) != bridged ||
					destinationLeg.HangupCause != end[len(end)-1].cause {
					t.Errorf("leg %+v", destinationLeg)
				}

				s.stop()
			})
		})
	}
}

func TestTheLegsOfACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		id := s.place("1002")
		time.Sleep(5 * time.Second)

		owner, loopback, destination := s.kafka.leg(t, "o1002"), s.kafka.leg(t, "l1002"), s.kafka.leg(t, "d1002")
		for _, row := range []event.CDR{owner, loopback, destination} {
			if row.InteractionID != "63954441200-0a1b2c3d" || row.MediaServer != "simulator" ||
				row.AccountID != "demo" ||
				row.CallID == id || row.EndedTime-row.Timestamp != *row.DurationSeconds ||
				row.Timestamp+*row.RingingSeconds != row.AnsweredTime ||
				row.AnsweredTime+*row.BillingSeconds != row.EndedTime {
				t.Errorf("row %+v", row)
			}
		}

		if owner.OriginationCallID != "" || owner.PresenceID != "1001" || owner.To != "1001" ||
			len(owner.CustomSIPHeaders) > 0 {
			t.Errorf("owner %+v", owner)
		}
		if loopback.OriginationCallID != id || string(loopback.CustomChannelVars) != `{"loopback_leg":"B"}` {
			t.Errorf("loopback %+v", loopback)
		}
		if destination.OriginationCallID != id || destination.To != "1002" ||
			string(destination.CustomSIPHeaders) != `{"svc_call_type":"clicktocall"}` {
			t.Errorf("destination %+v", destination)
		}

		if e := s.kafka.published().events; len(e) != 2 || e[0].Type != event.AgentCallStart ||
			e[1].Type != event.AgentCallEnd ||
			e[1].Data.HangupCause != "NORMAL_CLEARING" || e[0].Data.OriginationCallID != id ||
			e[0].Data.CallID != owner.CallID || e[0].Data.UserID != "u" {
			t.Errorf("events %+v", e)
		}

		s.stop()
	})
}

func TestCancelAtAnyTime(t *testing.T) {
	for after, want := range map[time.Duration]struct {
		legs, events int
		last         origination.State
	}{
		0: {2, 0, origination.RingingUser}, 200 * ms: {2, 0, origination.RingingUser},
		500 * ms: {3, 2, origination.Dialling}, time.Second: {3, 2, origination.Bridged},
	} {
		t.Run(after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, begun := newStage(t), time.Now()
				id := s.place("1002")
				time.Sleep(after)
				synctest.Wait()

				for range 2 {
					if err := s.Cancel(t.Context(), id); err != nil {
						t.Error(err)
					}
				}

				synctest.Wait()
				course := s.course(begun)
				if n := len(course); course[n-1] != (step{origination.Ended, after, "ORIGINATOR_CANCEL"}) ||
					course[n-2].state != want.last {
					t.Errorf("course %v", course)
				}
				if len(s.kafka.published().rows) != want.legs || len(s.kafka.published().events) != want.events {
					t.Errorf("%d legs, %d events", len(s.kafka.published().rows), len(s.kafka.published().events))
				}
				if err := s.Cancel(t.Context(), id); fault.KindOf(err) != fault.KindNotFound {
					t.Errorf("cancelled again: %v", err)
				}

				s.stop()
			})
		})
	}
}

func TestTheEndOfFollowEndsCallsAndKeepsTheirRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, begun := newStage(t), time.Now()
		s.place("1002")
		time.Sleep(time.Second)
		s.kafka.setAway(true)

		go func() {
			time.Sleep(2 * time.Second)
			s.kafka.setAway(false)
		}()

		s.stop()
		course := s.course(begun)
		if course[len(course)-1].cause != origination.CauseLost || len(s.kafka.published().rows) != 3 ||
			len(s.kafka.published().events) != 2 {
			t.Errorf("course %v, %d rows", course, len(s.kafka.published().rows))
		}
		if _, err := s.Originate(t.Context(), order("1002")); fault.KindOf(err) != fault.KindUnavailable {
			t.Errorf("placed after the end: %v", err)
		}
	})
}

func TestTheEndOfFollowDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.place("1002")
		time.Sleep(time.Second)
		s.kafka.setAway(true)
		ending := time.Now()
		s.stop()

		if took := time.Since(ending); took > 2*drainTimeout {
			t.Errorf("it took %s", took)
		}
	})
}

func TestRecordsWaitForKafka(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, begun := newStage(t), time.Now()
		s.kafka.setAway(true)
		s.place("9901")
		time.Sleep(time.Minute)

		if course := s.course(begun); course[len(course)-1].state != origination.Ended {
			t.Errorf("the call waits with its records: %v", course)
		}

		s.kafka.setAway(false)
		time.Sleep(time.Second)
		if len(s.kafka.published().rows) != 3 || len(s.kafka.published().events) != 2 ||
			s.kafka.published().events[0].Type != event.AgentCallStart {
			t.Errorf("rows %v, events %v", s.kafka.published().rows, s.kafka.published().events)
		}

		s.stop()
	})
}

func TestRoomForCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		for _, destination := range []string{"1", "2", "3"} {
			s.place(destination)
		}

		if _, err := s.Originate(t.Context(), order("4")); fault.KindOf(err) != fault.KindUnavailable {
			t.Errorf("a fourth: %v", err)
		}

		time.Sleep(5 * time.Second)
		s.place("4")
		s.stop()
	})
}

func TestACallGoesOnWhereItWouldBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		open := func(id string, state origination.State, since time.Time) origination.OpenCall {
			o := origination.OpenCall{Order: order("1002"), CallID: id, State: state, Since: since}
			o.ID = id
			return o
		}

		s := newStage(t, open("sim-a", origination.Dialling, now.Add(-100*ms)),
			open("another's", origination.Bridged, now),
			open("sim-b", origination.Bridged, now.Add(-time.Hour)))
		time.Sleep(5 * time.Second)
		s.mu.Lock()
		defer s.mu.Unlock()

		got := map[string][]step{}
		for _, p := range s.steps {
			got[p.CallID] = append(got[p.CallID], step{p.State, p.At.Sub(now), p.Cause})
		}

		for id, want := range map[string][]step{
			"sim-a":     {{origination.Bridged, 500 * ms, ""}, {origination.Ended, 2500 * ms, "NORMAL_CLEARING"}},
			"sim-b":     {{origination.Ended, 0, "NORMAL_CLEARING"}},
			"another's": {{origination.Ended, 0, "NORMAL_TEMPORARY_FAILURE"}},
		} {
			if !slices.Equal(got[id], want) {
				t.Errorf("%s: %v", id, got[id])
			}
		}

		if rows := s.kafka.published().rows; len(rows) != 6 {
			t.Errorf("%d rows", len(rows))
		}

		go s.stop()
	})
}

func TestConfigIsChecked(t *testing.T) {
	if _, err := New(Config{}, &fakeTopics{}, prometheus.NewRegistry(), slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a simulator without room was made")
	}
}
