package main

import (
	"runtime"
	"strconv"
	"strings"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/trunkline-bench/load"
)

// The baseline servers, the values of --floor.
const (
	baselinePlain     = "plain"
	baselineCoalesced = "coalesced"
)

func (b *fanoutBench) validate() error {
	share, err := strconv.ParseFloat(strings.TrimSuffix(b.stallShare, "%"), 64)
	if err != nil || share < 0 || share > 100 || !strings.HasSuffix(b.stallShare, "%") {
		return cli.Usagef("--stall is a share such as 5%%, not %q", b.stallShare)
	}

	b.stalledFraction = share / 100
	if b.workers == 0 {
		b.workers = max(runtime.NumCPU()/2, 1)
	}
	if err := b.validateEvents(); err != nil {
		return err
	}

	switch resume := load.Resume(b.resume); {
	case b.subscribers < 1 || b.accounts > b.subscribers:
		return cli.Usagef("--subscribers must be at least 1, and at least --accounts")
	case b.idle < 0:
		return cli.Usagef("--idle must not be below 0, is %v", b.idle)
	case !(b.ramp >= 0):
		return cli.Usagef("--ramp must not be below 0, is %v", b.ramp)
	case b.workers < 1:
		return cli.Usagef("--workers must be above 0, is %d", b.workers)
	case b.through != throughAuto && b.through != throughKafka && b.through != throughHTTP:
		return cli.Usagef("--through is auto, kafka or http, not %q", b.through)
	case resume != load.ResumeNever && resume != load.ResumeByID && resume != load.ResumeByCursor:
		return cli.Usagef("--resume is never, id or cursor, not %q", b.resume)
	case b.baseline != "" && b.baseline != baselinePlain && b.baseline != baselineCoalesced:
		return cli.Usagef("--floor is plain or coalesced, not %q", b.baseline)
	case b.baseline != "" && (b.everyAccount || b.stalledFraction > 0 || resume != load.ResumeNever):
		return cli.Usagef("a floor has subscribers of one account each, which read and do not resume")
	case b.peer != "" && b.peer != peerCentrifugo:
		return cli.Usagef("--peer is %s, not %q", peerCentrifugo, b.peer)
	case b.peer != "" && (b.baseline != "" || b.everyAccount || b.username != "" || resume != load.ResumeNever):
		return cli.Usagef("a peer has subscribers of one account each, which do not resume")
	}

	return b.validateShared(false)
}
