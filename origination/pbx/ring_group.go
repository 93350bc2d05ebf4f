package pbx

import (
	"context"
	"errors"
	"sync"
	"time"

	"trunkline/telephony/sip"
)

// phone is one target to be dialled, a registered phone or the trunk, and the record of its leg.
type phone struct {
	sip.OutgoingCall
	encryption sip.Encryption
	cdr        *cdrBuilder
}

// ringGroup is a group of phones that are dialled concurrently for one side.
type ringGroup struct {
	bridge  *bridge
	side    *callSide
	codecs  []sip.Codec // offered to the phones
	phones  []phone
	timeout time.Duration
	onRing  func() // called once, when the first phone rings or is answered
}

// ringResult is what became of one phone of a ringGroup.
type ringResult struct {
	phoneIndex int             // index in ringGroup.phones
	negotiator *sip.Negotiator // ours, which made offer
	offer      *sip.SDP        // the last one that was sent to the phone
	leg        *sip.Leg        // nil if err is set
	err        error
}

// ring dials the phones concurrently. The first that answers becomes the side's leg, and its
// cdrBuilder is returned; the records of the others are published. It returns when no phone rings any
// more.
func (d *Driver) ring(ctx context.Context, r ringGroup) (*cdrBuilder, error) {
	ctx, stop := context.WithTimeout(ctx, r.timeout)
	defer stop()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	results := make(chan ringResult, len(r.phones))
	var once sync.Once
	for i, p := range r.phones {
		p.OnOffer = func(ctx context.Context, offer *sip.SDP) (*sip.SDP, error) {
			return r.bridge.answerOffer(ctx, r.side, offer)
		}

		p.OnProgress = func(response sip.Progress) {
			if response.Status >= 180 {
				p.cdr.setRinging()
				once.Do(r.onRing)
			}
		}

		go func() {
			result := ringResult{phoneIndex: i, err: &sip.Failure{Cause: sip.NormalTemporaryFailure}} // after a panic
			defer func() { results <- result }()
			defer d.panics.Recover(callPanicPlace)
			d.dialPhone(ctx, r, p, &result)
		}()
	}

	winner, failures := r.collect(results, cancel)
	if winner == nil {
		return nil, r.finishFailed(ctx, failures)
	}

	once.Do(r.onRing) // it answered without ringing, or its 200 arrived before its 180
	return r.finishAnswered(winner, failures)
}

// dialPhone dials one phone. With optional encryption, a phone that refuses the description of plain
// media, although it has keys, is offered SRTP alone.
func (d *Driver) dialPhone(ctx context.Context, r ringGroup, p phone, result *ringResult) {
	encryption, err := p.encryption.ForTransport(p.Target.Transport)
	if err != nil {
		result.err = &sip.Failure{Cause: sip.IncompatibleDestination}
		return
	}

	for {
		result.negotiator = sip.NewNegotiator(r.side.port.Addr(), d.config.Codecs)
		result.negotiator.SetEncryption(encryption)
		p.Offer = result.negotiator.Offer(r.codecs...)
		result.offer = p.Offer
		result.leg, result.err = d.server.Dial(ctx, p.OutgoingCall)
		var refused *sip.Failure
		if encryption != sip.EncryptionOptional || !errors.As(result.err, &refused) ||
			refused.Cause != sip.IncompatibleDestination {
			return
		}

		encryption = sip.EncryptionRequired
	}
}

// collect waits for all results. The first leg wins.
func (r ringGroup) collect(results <-chan ringResult,
	cancel context.CancelCauseFunc) (winner *ringResult, failures []ringResult) {
	for range r.phones {
		// Also after the first leg: a phone may answer while the CANCEL is on its way to it.
		result := <-results
		switch {
		case result.err != nil:
			failures = append(failures, result)
		case winner != nil:
			result.leg.Hangup(sip.LoseRace)
			failures = append(failures, result)
		default:
			winner = &result
			cancel(sip.ErrAnsweredElsewhere)
		}
	}

	return winner, failures
}

func (r ringGroup) finishAnswered(winner *ringResult, failures []ringResult) (*cdrBuilder, error) {
	for _, f := range failures {
		cause := sip.LoseRace
		if f.err != nil {
			cause = sip.FailureCause(f.err)
		}
		r.phones[f.phoneIndex].cdr.publish(cause)
	}

	cdr := r.phones[winner.phoneIndex].cdr
	agreed, err := winner.negotiator.AcceptAnswer(winner.offer, winner.leg.PeerSDP())
	if err == nil {
		err = r.bridge.setLeg(r.side, winner.negotiator, winner.leg, agreed)
	}
	if err != nil {
		winner.leg.Hangup(sip.IncompatibleDestination)
		cdr.publish(sip.IncompatibleDestination)
		return nil, &sip.Failure{Cause: sip.IncompatibleDestination}
	}

	cdr.setAnswered()
	return cdr, nil
}

// mostSpecificCauses returns the causes in order of preference when all phones of a user failed.
func mostSpecificCauses() []sip.Cause {
	return []sip.Cause{sip.UserBusy, sip.CallRejected, sip.NoAnswer, sip.IncompatibleDestination}
}

// finishFailed publishes the records of phones that all failed, and returns the failure that
// represents them.
func (r ringGroup) finishFailed(ctx context.Context, failures []ringResult) error {
	causes := map[sip.Cause]bool{}
	var first sip.Cause
	for _, f := range failures {
		cause := causeOf(ctx, f.err)
		if cause == sip.RecoveryOnTimerExpire {
			cause = sip.NoAnswer // assume that it rang
		}

		causes[cause] = true
		if first == "" {
			first = cause
		}

		r.phones[f.phoneIndex].cdr.publish(cause)
	}

	for _, cause := range mostSpecificCauses() {
		if causes[cause] {
			return &sip.Failure{Cause: cause}
		}
	}

	return &sip.Failure{Cause: first}
}
