package requests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// server answers after a delay and stalls for some time.
type server struct {
	takes          time.Duration
	stopAt, stopTo time.Duration // since began
	began          time.Time
}

func (s *server) do(context.Context, uint64) (int, error) {
	time.Sleep(s.takes)
	if since := time.Since(s.began); since >= s.stopAt && since < s.stopTo {
		time.Sleep(s.stopTo - since)
	}
	return 200, nil
}

func runFor(t *testing.T, l *Load, rate float64, d time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	l.Run(ctx, rate)
}

func newLoad(t *testing.T, do func(context.Context, uint64) (int, error), connections int) *Load {
	t.Helper()
	l, err := New([]Operation{{"one", 1, do}}, connections)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A server that stalls for a second delays a tenth of a run of ten seconds, although hardly any
// request is outstanding during the stall.
func TestOpenLoopDoesNotOmitWhatWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stops := &server{takes: time.Millisecond, stopAt: 5 * time.Second, stopTo: 6 * time.Second, began: time.Now()}
		l := newLoad(t, stops.do, 4)
		runFor(t, l, 100, 10*time.Second-time.Nanosecond)
		got := l.Tally()["one"]
		if got.Requests != 1000 || got.Failed != 0 || got.Statuses[200] != 1000 {
			t.Errorf("%+v", got)
		}
		if p50, p95 := got.Latency.Quantile(.5), got.Latency.Quantile(.95); p50 > 2*time.Millisecond ||
			p95 < 450*time.Millisecond || p95 > 550*time.Millisecond {
			t.Errorf("p50 %s, p95 %s", p50, p95)
		}
		if got.Latency.Max() < 990*time.Millisecond {
			t.Errorf("max %s", got.Latency.Max())
		}
	})
}

func TestClosedLoopAsksAgainWhenAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoad(t, (&server{takes: 10 * time.Millisecond}).do, 4)
		runFor(t, l, 0, time.Second-time.Nanosecond)
		if got := l.Tally()["one"]; got.Requests != 400 || got.Latency.Max() != 10*time.Millisecond || l.Behind() != 0 {
			t.Errorf("%d requests, max %s", got.Requests, got.Latency.Max())
		}
	})
}

func TestBehindTellsWhatCouldNotBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoad(t, (&server{takes: time.Hour}).do, 4)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { l.Run(ctx, 100) })
		time.Sleep(time.Second + time.Millisecond)
		if behind := l.Behind(); behind != 101-4 {
			t.Errorf("%d are behind", behind)
		}
		cancel()
		running.Wait()
		if got := l.Tally()["one"]; got.Requests != 4 || l.Behind() != 0 {
			t.Errorf("%d were finished, %d are behind", got.Requests, l.Behind())
		}
	})
}

func TestOperationsTakeTurnsByWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		operation := func(name string, weight int) Operation {
			return Operation{name, weight, func(_ context.Context, n uint64) (int, error) {
				order = append(order, fmt.Sprint(name, n))
				time.Sleep(time.Second)
				return 200, nil
			}}
		}
		l, err := New([]Operation{operation("a", 1), operation("b", 3)}, 1)
		if err != nil {
			t.Fatal(err)
		}
		runFor(t, l, 0, 8*time.Second-time.Nanosecond)
		if want := []string{"b0", "a0", "b1", "b2", "b3", "a1", "b4", "b5"}; !slices.Equal(order, want) {
			t.Errorf("%q", order)
		}
		before := l.Tally()
		runFor(t, l, 0, 4*time.Second-time.Nanosecond)
		since := l.Tally()["b"].Since(before["b"])
		if since.Requests != 3 || since.Statuses[200] != 3 || since.Latency.Count() != 3 {
			t.Errorf("%+v", since)
		}
	})
}

func TestFailuresHaveNames(t *testing.T) {
	for want, err := range map[string]error{
		"status 503":         &Unexpected{503, "draining"},
		"wrong answer":       fmt.Errorf("asking: %w", &Unexpected{200, "no token"}),
		"timeout":            context.DeadlineExceeded,
		"connection refused": &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)},
		"connection reset":   &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)},
		"connection closed":  fmt.Errorf("reading: %w", io.ErrUnexpectedEOF),
		"other":              errors.New("x"),
	} {
		if got := Name(err); got != want {
			t.Errorf("%v is named %q, want %q", err, got, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		answers := []error{nil, &Unexpected{503, "first"}, &Unexpected{503, "second"}, io.EOF}
		l := newLoad(t, func(_ context.Context, n uint64) (int, error) {
			time.Sleep(time.Second)
			var refused *Unexpected
			if err := answers[n]; errors.As(err, &refused) {
				return 503, err
			} else if err != nil {
				return 0, err
			}
			return 200, nil
		}, 1)
		runFor(t, l, 0, 4*time.Second-time.Nanosecond)
		got := l.Tally()["one"]
		if got.Requests != 4 || got.Failed != 3 || got.Statuses[200] != 1 || got.Statuses[503] != 2 ||
			got.Statuses[0] != 0 ||
			got.Errors["status 503"] != 2 || got.Errors["connection closed"] != 1 ||
			got.Examples["status 503"] != "503 first" {
			t.Errorf("%+v", got)
		}
		var sum Tally
		sum.Add(got)
		sum.Add(got)
		if sum.Requests != 8 || sum.Statuses[503] != 4 || sum.Errors["status 503"] != 4 || sum.Latency.Count() != 8 {
			t.Errorf("%+v", sum)
		}
	})
}

func TestLoadIsValidated(t *testing.T) {
	do := (&server{}).do
	for name, c := range map[string]struct {
		operations  []Operation
		connections int
	}{
		"nothing to do":    {nil, 1},
		"no connection":    {[]Operation{{"a", 1, do}}, 0},
		"no weight":        {[]Operation{{"a", 0, do}}, 1},
		"too many weights": {[]Operation{{"a", MaxWeight, do}, {"b", 1, do}}, 1},
	} {
		if _, err := New(c.operations, c.connections); err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
}
