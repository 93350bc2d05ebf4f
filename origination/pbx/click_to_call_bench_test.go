package pbx_test

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"trunkline/origination"
	"trunkline/origination/pbx"
	"trunkline/telephony/sip/siptest"
)

// BenchmarkSetup is click-to-calls from their order to their records: both
// phones answer at once, and the call is cancelled when it is bridged. The
// phones are in this process and share its CPU.
func BenchmarkSetup(b *testing.B) {
	const atOnce = 20
	w := newTestEnv(b, func(c *pbx.Config) { c.MaxCalls = 1000 }, nil)
	owner, destination := w.phone("1001"), w.phone("1002")
	over := make(chan struct{})
	var drained sync.WaitGroup
	defer drained.Wait()
	defer close(over)

	for _, p := range []*siptest.Phone{owner, destination} {
		drained.Go(func() {
			for {
				select {
				case <-p.Calls():
				case <-over:
					return
				}
			}
		})
	}

	slots := make(chan struct{}, atOnce)

	var ended sync.WaitGroup
	done := make(chan struct{})
	go func() {
		defer close(done)

		for p := range w.steps {
			switch p.State {
			case origination.Bridged:
				if err := w.driver.Cancel(context.Background(), p.CallID); err != nil {
					b.Error(err)
				}
			case origination.Ended:
				if p.Cause != "ORIGINATOR_CANCEL" {
					b.Errorf("a call ended with %s", p.Cause)
				}
				<-slots
				ended.Done()
			}
		}
	}()

	before, start := cpuTime(b), time.Now()
	n := 0
	for b.Loop() {
		slots <- struct{}{}
		ended.Add(1)
		if _, err := w.driver.Originate(context.Background(), order(fmt.Sprint("bench-", n), "1002")); err != nil {
			b.Fatal(err)
		}
		n++
	}

	ended.Wait()
	passed := time.Since(start).Seconds()
	b.ReportMetric(float64(n)/passed, "calls/s")
	b.ReportMetric(1000*(cpuTime(b)-before).Seconds()/float64(n), "cpu-ms/call")
	w.stop()
	close(w.steps)
	<-done
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
