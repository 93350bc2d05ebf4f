package freeswitch

import (
	"context"
	"log/slog"
	"regexp"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"trunkline/internal/fault"
	"trunkline/origination/eventdriver"
	"trunkline/telephony/esl"
)

const (
	// sessionsPerCall is the number of sessions that a call counts against the switch's
	// sessions-per-second: the owner's leg, the loopback's two, and the destination's.
	sessionsPerCall = 4
	// paceShare is the share of sessions-per-second that is used, which leaves room for answers at the
	// same time and the switch's other calls.
	paceShare = 0.9
)

// pacer spaces originations to stay below sessions-per-second. Above it FreeSWITCH refuses new
// sessions, including those that a call needs after its owner has answered.
type pacer struct {
	limiter *rate.Limiter // of calls, not of sessions
	maxWait time.Duration // longest wait of a call
	metrics *metrics
	log     *slog.Logger

	mu                sync.Mutex
	sessionsPerSecond int // of the switch; 0 if unknown
}

func newPacer(maxWait time.Duration, m *metrics, log *slog.Logger) *pacer {
	return &pacer{limiter: rate.NewLimiter(rate.Inf, 1), maxWait: maxWait, metrics: m, log: log}
}

// setSessionsPerSecond sets the switch's sessions-per-second; 0 removes the limit.
func (p *pacer) setSessionsPerSecond(sessions int) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if sessions == p.sessionsPerSecond {
		return
	}

	p.sessionsPerSecond = sessions
	p.metrics.sessionsPerSecond.Set(float64(sessions))

	limit := rate.Inf
	if sessions > 0 {
		limit = rate.Limit(paceShare * float64(sessions) / sessionsPerCall)
	}

	p.limiter.SetLimit(limit)
}

func (p *pacer) currentSessionsPerSecond() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sessionsPerSecond
}

// wait waits until the rate limit allows the call. The error is fault.Unavailable with a retry time if
// the wait would be longer than maxWait.
func (p *pacer) wait(ctx context.Context) error {
	reservation := p.limiter.Reserve()
	delay := reservation.Delay()
	if delay == 0 {
		return nil
	}

	maxWait := p.maxWait
	deadline, bounded := ctx.Deadline()
	if bounded {
		maxWait = min(maxWait, time.Until(deadline))
	}

	if delay > maxWait {
		reservation.Cancel()
		p.metrics.queueRefused.Inc()
		p.log.WarnContext(ctx, "call refused: too many wait for the switch",
			"sessions_per_second", p.currentSessionsPerSecond(), "would_wait", delay)
		return fault.Unavailable(nil, delay-maxWait+time.Second,
			"Too many calls wait for the phone platform, which limits new sessions per second")
	}

	p.log.WarnContext(ctx, "call queued: the switch limits new sessions per second",
		"sessions_per_second", p.currentSessionsPerSecond(), "wait", delay)
	p.metrics.queued.Inc()
	defer p.metrics.queued.Dec()

	timer := time.NewTimer(delay)
	defer timer.Stop()

	select {
	case <-timer.C:
		p.metrics.queueSeconds.Observe(delay.Seconds())
		return nil
	case <-ctx.Done():
		reservation.Cancel()
		return fault.Unavailable(ctx.Err(), eventdriver.RetryAfter, "the phone platform did not answer")
	}
}

// queryRate queries the switch's sessions-per-second and sets the pacer to it.
func (p *platform) queryRate(ctx context.Context, conn *esl.Conn) (sessions int, err error) {
	text, _, err := queryAPI(ctx, conn, "status")
	if err != nil {
		return 0, err
	}
	sessions = readStatus(text)
	p.pace.setSessionsPerSecond(sessions)
	return sessions, nil
}

// statusLimit matches in the output of "status": 0 session(s) per Sec out of max 30, peak 2, last 5min
// 0.
var statusLimit = regexp.MustCompile(`session\(s\) per Sec out of max (\d{1,9})\b`)

// readStatus returns the switch's sessions-per-second, or 0 if text does not have it.
func readStatus(text string) int {
	found := statusLimit.FindStringSubmatch(text)
	if found == nil {
		return 0
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		return 0
	}
	return n
}
