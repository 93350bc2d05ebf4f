package main

import (
	"net/url"
	"runtime"
	"strconv"
	"strings"

	"trunkline/internal/loadtest"
)

// The ways of events.
const (
	throughAuto  = "auto"
	throughKafka = "kafka"
	throughHTTP  = "http"
)

// The floors.
const (
	floorPlain     = "plain"
	floorCoalesced = "coalesced"
)

func (b *bench) validate() error {
	share, err := strconv.ParseFloat(strings.TrimSuffix(b.stall, "%"), 64)
	if err != nil || share < 0 || share > 100 || !strings.HasSuffix(b.stall, "%") {
		return usagef("--stall is a share such as 5%%, not %q", b.stall)
	}
	b.stalled = share / 100
	if b.workers == 0 {
		b.workers = max(runtime.NumCPU()/2, 1)
	}
	if len(b.accountIDs) > 0 {
		b.accounts = len(b.accountIDs)
	}
	switch resume := loadtest.Resume(b.resume); {
	case b.subscribers < 1 || b.accounts < 1 || b.accounts > b.subscribers:
		return usagef("--subscribers must be at least 1, and at least --accounts, which is at least 1")
	case b.rate <= 0 || b.rate > 1e6:
		return usagef("--rate must be above 0 and at most 1000000, is %v", b.rate)
	case b.duration <= 0 || b.warmup < 0 || b.idle < 0 || b.climb < 0 || b.ramp < 0 || b.workers < 1:
		return usagef("--duration and --workers must be above 0, --warmup, --idle, --climb and --ramp not below")
	case b.size > 1<<20:
		return usagef("--size must be at most 1048576, is %d", b.size)
	case b.through != throughAuto && b.through != throughKafka && b.through != throughHTTP:
		return usagef("--through is auto, kafka or http, not %q", b.through)
	case resume != loadtest.Never && resume != loadtest.ByID && resume != loadtest.ByCursor:
		return usagef("--resume is never, id or cursor, not %q", b.resume)
	case b.floor != "" && b.floor != floorPlain && b.floor != floorCoalesced:
		return usagef("--floor is plain or coalesced, not %q", b.floor)
	case b.floor != "" && (b.accounts > 1 || b.stalled > 0 || resume != loadtest.Never):
		return usagef("a floor has one account, reading subscribers, and no resume")
	case b.username != "" && (b.domain == "" || len(b.accountIDs) == 0):
		return usagef("--username needs --domain and --account")
	case b.username == "" && (len(b.accountIDs) > 0 || b.apiKey != ""):
		return usagef("--account and --api-key need --username")
	}
	for _, base := range b.metrics {
		if u, err := url.Parse(base); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return usagef("--metrics is such as http://127.0.0.1:9464, not %q", base)
		}
	}
	return b.wholeURL()
}

// wholeURL settles the server's URL.
func (b *bench) wholeURL() error {
	s, err := b.p.settings()
	if err != nil {
		return err
	}
	if b.url == "" {
		b.url = serverURL(s)
	}
	b.url = strings.TrimRight(b.url, "/")
	u, err := url.Parse(b.url)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
		return usagef("--url must be https://host:port, without a user")
	}
	if least := loadtest.MinEventSize(b.longestAccount()); b.size < least {
		return usagef("--size must be at least %d", least)
	}
	return nil
}
