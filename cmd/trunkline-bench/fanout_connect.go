package main

import (
	"context"
	"fmt"
	"time"

	"trunkline/internal/retry"
)

// connect opens the subscribers and measures their idle cost.
func (r *fanoutRun) connect(ctx context.Context) error {
	before, err := r.observer.usage(ctx, true)
	if err != nil {
		return err
	}

	idleBefore, err := r.idleCPU(ctx)
	if err != nil {
		return err
	}

	atStart, err := r.observer.usage(ctx, false)
	if err != nil {
		return err
	}

	began := time.Now()
	err = r.load.Connect(ctx)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("connecting: %w", err)
	}

	took := time.Since(began).Seconds()
	r.report.Connected = r.load.Tally().Open
	r.report.ConnectSeconds, r.report.ConnectionsPerSecond = took, float64(r.report.Connected)/took

	if r.observer.disabled() || r.report.Connected == 0 {
		return nil
	}

	afterConnect, err := r.observer.usage(ctx, false)
	if err != nil {
		return err
	}

	idle, err := r.idleCPU(ctx)
	if err != nil {
		return err
	}

	settled, err := r.observer.usage(ctx, true)
	if err != nil {
		return err
	}

	n := float64(r.report.Connected)
	r.report.Usage = &serverUsage{
		RSSBytesBefore: before.RSS, RSSBytesConnected: settled.RSS, RSSBytesEnd: settled.RSS,
		RSSBytesPerConnection:     float64(settled.RSS-before.RSS) / n,
		GoBytesPerConnection:      float64(settled.Heap-before.Heap) / n,
		ConnectCPUMicroseconds:    float64((afterConnect.CPU - atStart.CPU).Microseconds()) / n,
		IdleCPUMicrosecondsPerSec: (idle - idleBefore) / n,
		BaseCPUMicrosecondsPerSec: idleBefore,
	}

	return nil
}

// idleCPU returns the server's CPU time per second without traffic, in microseconds; 0 if it is
// not measured.
func (r *fanoutRun) idleCPU(ctx context.Context) (float64, error) {
	// until pending work has ended
	if r.idle == 0 || r.observer.disabled() || !retry.Sleep(ctx, min(r.idle, 2*time.Second)) {
		return 0, nil
	}

	before, err := r.observer.usage(ctx, false)
	if err != nil {
		return 0, err
	}

	began := time.Now()
	retry.Sleep(ctx, r.idle)
	after, err := r.observer.usage(ctx, false)

	return float64((after.CPU - before.CPU).Microseconds()) / time.Since(began).Seconds(), err
}
