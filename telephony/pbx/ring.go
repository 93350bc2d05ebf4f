package pbx

import (
	"context"
	"sync"
	"time"

	"trunkline/telephony/sip"
)

// phone is one thing to be dialled, and its record.
type phone struct {
	sip.Call
	ticket *ticket
}

// ringing is several phones that are dialled at once for one side.
type ringing struct {
	bridge  *bridge
	side    *side
	codecs  []sip.Codec // to offer
	phones  []phone
	timeout time.Duration
	onRing  func() // called once
}

type rung struct {
	phone int
	leg   *sip.Leg
	err   error
}

// ring dials the phones; the first that answers is the side's leg, and its
// ticket is returned. Those of the others are written. It returns when nothing
// rings any more.
func (d *Driver) ring(ctx context.Context, r ringing) (*ticket, error) {
	ctx, stop := context.WithTimeout(ctx, r.timeout)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	offer := r.side.local.Offer(r.codecs...)
	results := make(chan rung, len(r.phones))
	var once sync.Once
	for i, p := range r.phones {
		p.Offer = offer
		p.OnOffer = func(ctx context.Context, offer *sip.Session) (*sip.Session, error) {
			return r.bridge.offered(ctx, r.side, offer)
		}
		p.OnProgress = func(now sip.Progress) {
			if now.Status >= 180 {
				p.ticket.ringing()
				once.Do(r.onRing)
			}
		}
		go func() {
			leg, err := d.server.Dial(ctx, p.Call)
			results <- rung{i, leg, err}
		}()
	}
	winner, failures := r.collect(results, cancel)
	if winner == nil {
		return nil, r.failed(ctx, failures)
	}
	once.Do(r.onRing) // it answered at once, or its 200 overtook its 180
	return r.won(offer, winner, failures)
}

// collect waits for all; the first leg is the winner.
func (r ringing) collect(results <-chan rung, cancel context.CancelCauseFunc) (winner *rung, failures []rung) {
	for range r.phones {
		result := <-results
		switch {
		case result.err != nil:
			failures = append(failures, result)
		case winner != nil:
			result.leg.Hangup(sip.LoseRace)
			failures = append(failures, result)
		default:
			winner = &result
			cancel(sip.ErrElsewhere)
		}
	}
	return winner, failures
}

func (r ringing) won(offer *sip.Session, winner *rung, failures []rung) (*ticket, error) {
	for _, f := range failures {
		cause := sip.LoseRace
		if f.err != nil {
			cause = sip.FailureCause(f.err)
		}
		r.phones[f.phone].ticket.end(cause)
	}
	t := r.phones[winner.phone].ticket
	agreed, err := r.side.local.Accept(offer, winner.leg.Session())
	if err != nil {
		winner.leg.Hangup(sip.IncompatibleDestination)
		t.end(sip.IncompatibleDestination)
		return nil, &sip.Failure{Cause: sip.IncompatibleDestination}
	}
	r.bridge.answered(r.side, winner.leg, agreed)
	t.answer()
	return t, nil
}

// telling are the causes that say most about a user whose phones all failed.
func telling() []sip.Cause {
	return []sip.Cause{sip.UserBusy, sip.CallRejected, sip.NoAnswer, sip.IncompatibleDestination}
}

// failed is what stands for all failures together.
func (r ringing) failed(ctx context.Context, failures []rung) error {
	causes := map[sip.Cause]bool{}
	var first sip.Cause
	for _, f := range failures {
		cause := causeOf(ctx, f.err)
		if cause == sip.RecoveryOnTimerExpire {
			cause = sip.NoAnswer // it rang, as far as anybody can tell
		}
		causes[cause] = true
		if first == "" {
			first = cause
		}
		r.phones[f.phone].ticket.end(cause)
	}
	for _, cause := range telling() {
		if causes[cause] {
			return &sip.Failure{Cause: cause}
		}
	}
	return &sip.Failure{Cause: first}
}
