package load

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// recordingSink is a sink that records the events.
type recordingSink struct {
	delay time.Duration
	fails error
	run   string

	mu     sync.Mutex
	stamps map[int][]Stamp // by stream
	sizes  map[int]bool
	bad    []string
}

func (n *recordingSink) Publish(_ context.Context, events []Event) error {
	time.Sleep(n.delay)
	n.mu.Lock()
	defer n.mu.Unlock()

	r := newStampReader(n.run)
	for _, e := range events {
		s, ok := r.read(e.JSON)
		if !ok || s.Stream != e.Stream || !json.Valid(e.JSON) {
			n.bad = append(n.bad, string(e.JSON))
		}
		n.stamps[e.Stream] = append(n.stamps[e.Stream], s)
		n.sizes[len(e.JSON)] = true
	}

	return n.fails
}

// runSource runs a source for some time on a test clock.
func runSource(t *testing.T, accounts int, rate float64, duration time.Duration, sink *recordingSink) (*Source, error) {
	t.Helper()
	sink.run, sink.stamps, sink.sizes = testRun, map[int][]Stamp{}, map[int]bool{}
	cfg := SourceConfig{Run: testRun, Size: 400, Clock: NewClock()}

	for range accounts {
		cfg.Accounts = append(cfg.Accounts, "account")
	}

	s, err := NewSource(cfg, sink)
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), duration)
	defer cancel()

	return s, s.Run(ctx, rate)
}

func TestSourceKeepsItsSchedule(t *testing.T) {
	for name, c := range map[string]struct {
		accounts int
		rate     float64
		delay    time.Duration
	}{
		"one account":          {1, 100, 0},
		"few accounts":         {3, 1000, time.Millisecond},
		"more than publishers": {50, 1000, 3 * time.Millisecond},
		"not a multiple of it": {37, 997, time.Millisecond},
		"a slow sink":          {1, 2000, 150 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink := &recordingSink{delay: c.delay}
				began := time.Now()
				s, err := runSource(t, c.accounts, c.rate, 2*time.Second-time.Microsecond, sink)
				if err != nil || len(sink.bad) > 0 || len(sink.sizes) != 1 || !sink.sizes[400] {
					t.Fatalf("%v, sizes %v, bad %q", err, sink.sizes, sink.bad)
				}

				total := 0
				for stream, stamps := range sink.stamps {
					for i, stamp := range stamps {
						due := began.Add(time.Duration(float64(i*c.accounts+stream) / c.rate * float64(time.Second)))
						if stamp.Seq != uint64(i+1) || stamp.At != due.UnixNano() {
							t.Fatalf("stream %d, event %d: %+v, was due at %d", stream, i, stamp, due.UnixNano())
						}
					}

					if published := s.Published()[stream]; published != uint64(len(stamps)) {
						t.Errorf("stream %d: %d published, %d received", stream, published, len(stamps))
					}

					total += len(stamps)
				}

				// Events that become due during the last batch are not published.
				if want := 2 * c.rate; float64(total) > want ||
					float64(total) < want-c.rate*c.delay.Seconds()-float64(defaultPublishers) {
					t.Errorf("%d events in 2 s at %v", total, c.rate)
				}
				if s.Acks().Max() != c.delay {
					t.Errorf("acknowledged after %v", s.Acks().Max())
				}
			})
		})
	}
}

func TestSourceSendsWholeBatches(t *testing.T) {
	for name, rate := range map[string]float64{"paced": 100, "as fast as it goes": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink := &recordingSink{delay: 10 * time.Millisecond, run: testRun, stamps: map[int][]Stamp{},
					sizes: map[int]bool{}}
				cfg := SourceConfig{Run: testRun, Accounts: []string{"a", "b", "c"}, Size: 700, Clock: NewClock(),
					Publishers: 2, Batch: 5, Encode: CallRecord}
				s, err := NewSource(cfg, sink)
				if err != nil {
					t.Fatal(err)
				}

				ctx, cancel := context.WithTimeout(t.Context(), time.Second-time.Microsecond)
				defer cancel()

				began := time.Now()
				// the test clock is in 2000, whose Unix seconds have nine digits
				if err := s.Run(ctx, rate); err != nil || len(sink.bad) > 0 || len(sink.sizes) != 1 ||
					!sink.sizes[697] {
					t.Fatalf("%v, sizes %v, bad %q", err, sink.sizes, sink.bad)
				}

				total, dues := 0, map[time.Duration]int{}
				for stream, stamps := range sink.stamps {
					var c sequence
					for _, stamp := range stamps {
						if arrival, missing := c.observe(stamp.Seq); arrival != arrivedInOrder || missing != 0 {
							t.Fatalf("stream %d: %+v", stream, stamps)
						}
						dues[time.Unix(0, stamp.At).Sub(began)]++
					}

					total += len(stamps)
				}

				// Without a rate, each of two publishers sends five events every 10 ms; with one,
				// the publishers take turns, and the last batch is due at the end.
				want := map[string]int{"paced": 95, "as fast as it goes": 1000}[name]
				if total != want {
					t.Errorf("%d events in a second, want %d", total, want)
				}

				for due, n := range dues {
					if n%5 != 0 || name == "paced" && due%(50*time.Millisecond) != 0 {
						t.Errorf("%d events were due at %s", n, due)
					}
				}
			})
		})
	}
}

func TestSourceGoesOnCounting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &recordingSink{}
		s, err := runSource(t, 2, 100, 50*time.Millisecond, sink)
		if err != nil {
			t.Fatal(err)
		}

		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()

		if err := errors.Join(s.Probe(ctx), s.Run(ctx, 100)); err != nil {
			t.Fatal(err)
		}

		var c sequence
		for _, stamp := range sink.stamps[0] {
			if stamp.Seq == 0 {
				continue // the probe
			}
			if arrival, missing := c.observe(stamp.Seq); arrival != arrivedInOrder || missing != 0 {
				t.Fatalf("%+v", sink.stamps[0])
			}
		}

		if c.highest != s.Published()[0] || c.highest < 5 {
			t.Errorf("%d received, %d published", c.highest, s.Published()[0])
		}
	})
}

func TestSourceEndsWithItsSinksError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("disk full")
		s, err := runSource(t, 3, 100, time.Hour, &recordingSink{fails: full})
		if !errors.Is(err, full) || s.Published()[0] != 0 {
			t.Errorf("%v, published %v", err, s.Published())
		}
	})
}

func TestSourceNeedsARate(t *testing.T) {
	for _, rate := range []float64{-1, 0} { // 0 is valid only with a batch size
		if _, err := runSource(t, 1, rate, time.Second, &recordingSink{}); err == nil {
			t.Errorf("%v was taken", rate)
		}
	}
}

func TestSourceConfigIsValidated(t *testing.T) {
	for name, change := range map[string]func(*SourceConfig){
		"run": func(c *SourceConfig) { c.Run = "" }, "accounts": func(c *SourceConfig) { c.Accounts = nil },
		"size":       func(c *SourceConfig) { c.Size = MinEventSize("a") - 1 },
		"clock":      func(c *SourceConfig) { c.Clock = Clock{} },
		"publishers": func(c *SourceConfig) { c.Publishers = -1 },
		"batch":      func(c *SourceConfig) { c.Batch = MaxBatch + 1 },
		"encode":     func(c *SourceConfig) { c.Encode = CallRecord }, // whose records exceed Size
	} {
		cfg := SourceConfig{Run: testRun, Accounts: []string{"a"}, Size: MinEventSize("a"), Clock: NewClock()}
		if err := cfg.Validate(); err != nil {
			t.Fatal(err)
		}

		change(&cfg)
		if cfg.Validate() == nil {
			t.Errorf("%s: was taken", name)
		}
	}
}
