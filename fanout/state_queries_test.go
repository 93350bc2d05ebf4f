package fanout

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event"
	"trunkline/event/state"
)

// TestEntriesAreFoundByKeyAndByWhatTheyHave: of an account and those below it, as the newest event of any partition
// left them.
func TestEntriesAreFoundByKeyAndByWhatTheyHave(t *testing.T) {
	inBubble(t, Config{},
		func(t *testing.T, f *Fanout, log *memoryLog, gate chan struct{}, _ *memoryDirectory) {
			log.addPartition()
			log.normalizes()
			source := int64(4)
			call := func(partition int, account, id string, s event.State, origination string) {
				name := event.NameQueueCallEntered
				if s == event.Ended {
					name = event.NameQueueCallAbandoned
				}
				time.Sleep(time.Second) // of the bubble: later events have higher ids
				log.happen(happening{partition: partition, source: source, at: time.Now(), account: account,
					typ: event.QueueCall, facts: event.Facts{Name: name, CallID: id, QueueID: "sales", State: s,
						OriginationCallID: origination}})
				source++
			}

			log.happen(loggedIn("root", "7", 0), loggedIn("shop", "7", 1), loggedIn("other", "7", 2),
				loggedIn("root", "8", 3))
			call(0, "root", "moved", event.Waiting, "o-1")
			call(1, "root", "moved", event.Ended, "")
			call(1, "root", "live", event.Waiting, "o-2")
			call(1, "other", "theirs", event.Waiting, "o-2")
			close(gate)

			key := func(account string, kind state.Kind, id string) state.Key {
				return state.Key{Account: account, Kind: kind, ID: id}
			}
			all := []state.Key{key("root", state.Agent, "7"), key("shop", state.Agent, "7"),
				key("other", state.Agent, "7"), key("root", state.Call, "moved"), key("root", state.Call, "live"),
				key("root", state.Call, "unknown")}

			for account, want := range map[string]string{"root": "root|agent|7 root|call|live root|call|moved shop|agent|7",
				"shop": "shop|agent|7", "other": "other|agent|7"} {
				found, err := f.FindEntries(t.Context(), account, all...)
				if got := keysOf(found); err != nil || got != want {
					t.Errorf("%s has %q, %v, want %q", account, got, err, want)
				}

				moved := found[key("root", state.Call, "moved")]
				if moved != nil && moved.State != event.Ended {
					t.Errorf("the call that has ended in another partition is %s", moved.State)
				}
			}

			placed := func(id string) func(*state.Entry) bool {
				return func(e *state.Entry) bool { return e.OriginationCallID == id && e.Live() }
			}
			isSeven := func(e *state.Entry) bool { return e.Kind == state.Agent && e.ID == "7" }
			for name, c := range map[string]struct {
				account string
				wanted  func(*state.Entry) bool
				want    string
			}{
				"agents of an id":              {"root", isSeven, "root|agent|7 shop|agent|7"},
				"agents of an id below":        {"shop", isSeven, "shop|agent|7"},
				"a call by what it has":        {"root", placed("o-2"), "root|call|live"},
				"a call that ended elsewhere":  {"root", placed("o-1"), ""},
				"nothing of what is not there": {"root", placed("o-9"), ""},
			} {
				found, err := f.SearchEntries(t.Context(), c.account, c.wanted)
				if got := keysOf(found); err != nil || got != c.want {
					t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
				}
			}
		})
}

func keysOf(entries map[state.Key]*state.Entry) (keys string) {
	var all []string
	for key := range entries {
		all = append(all, key.String())
	}

	slices.Sort(all)
	for i, key := range all {
		if i > 0 {
			keys += " "
		}
		keys += key
	}

	return keys
}

// BenchmarkOneAgentOfTenThousand finds the agent of an action: in an account with 10,000 agents, 3,000 calls and 30,000
// that have ended.
func BenchmarkOneAgentOfTenThousand(b *testing.B) {
	const agents, calls, ended = 10_000, 3_000, 30_000
	log, directory := largeState(8, agents, calls, ended), newDirectory()
	f, err := New(testConfig(Config{}, "node"),
		Deps{LogReader: log, Auth: directory, Directory: directory, Presence: newPresence(),
			Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}

	ctx, stop := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			b.Error(err)
		}
	}()

	const id = "17@pbx.example.com"
	key := state.Key{Account: "root", Kind: state.Agent, ID: id}
	if _, err := f.FindEntries(ctx, "root", key); err != nil { // the first one waits for the state to be read
		b.Fatal(err)
	}

	b.Run("by its key", func(b *testing.B) {
		for b.Loop() {
			found, err := f.FindEntries(b.Context(), "root", key)
			if err != nil || found[key] == nil {
				b.Fatal(len(found), err)
			}
		}
	})

	b.Run("by its id, in whatever account", func(b *testing.B) {
		for b.Loop() {
			found, err := f.SearchEntries(b.Context(), "root",
				func(e *state.Entry) bool { return e.Kind == state.Agent && e.ID == id })
			if err != nil || found[key] == nil {
				b.Fatal(len(found), err)
			}
		}
	})
}

// TestCallsVersionTellsWhatCallsInQueuesWouldReturn: whoever follows the calls of a large account reads them
// when they have changed, not when its agents have.
func TestCallsVersionTellsWhatCallsInQueuesWouldReturn(t *testing.T) {
	inBubble(t, Config{},
		func(t *testing.T, f *Fanout, log *memoryLog, gate chan struct{}, _ *memoryDirectory) {
			close(gate)
			source := int64(0)
			call := func(account string, name event.Name, s event.State) {
				log.happen(happening{source: source, at: time.Now(), account: account, typ: event.QueueCall,
					facts: event.Facts{Name: name, CallID: "c", QueueID: "sales", State: s}})
				source++
			}
			visits := func(want int) int64 {
				t.Helper()
				time.Sleep(time.Second) // of the bubble: what was written is read
				version := f.CallsVersion("root")
				calls, err := f.CallsInQueues(t.Context(), "root")
				if err != nil || len(calls) != want {
					t.Fatalf("%d calls, %v, want %d", len(calls), err, want)
				}
				return version
			}

			log.happen(loggedIn("root", "7", 0))
			source++
			visits(0)
			before := visits(0)

			log.happen(loggedIn("root", "8", source))
			source++
			call("below", event.NameQueueCallEntered, event.Waiting)
			if again := visits(0); again != before {
				t.Errorf("agents and calls of others change the version from %d to %d", before, again)
			}

			call("root", event.NameQueueCallEntered, event.Waiting)
			entered := visits(1)
			call("root", event.NameQueueCallAbandoned, event.Ended)
			if left := visits(0); entered == before || left == entered {
				t.Errorf("versions %d, %d with a call, %d after it", before, entered, left)
			}

			before = f.CallsVersion("root")
			time.Sleep(2 * stateLinger) // nobody asks, then the state is read again
			_, _ = f.CallsInQueues(t.Context(), "root")
			if again := visits(0); again == before {
				t.Error("a reading from the beginning has the version of the one before")
			}
		})
}
