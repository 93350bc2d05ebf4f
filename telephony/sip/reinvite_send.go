package sip

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	sipmsg "github.com/emiago/sipgo/sip"

	"trunkline/internal/fault"
)

// errGlare is the error of an offer that crossed the peer's (RFC 3261, section 14.1).
var errGlare = errors.New("sip: both sides made an offer at once")

// glareAttempts is the number of attempts for an offer that crosses the peer's.
const glareAttempts = 4

// Reinvite sends a new offer to the peer and returns its answer, within 32 s per attempt. A *Failure
// leaves the session unchanged, unless the peer no longer has the dialog: then the leg has ended. ctx
// is observed between attempts.
func (l *Leg) Reinvite(ctx context.Context, offer *SDP) (*SDP, error) {
	for attempt := 1; ; attempt++ {
		answer, err := l.sendReinvite(offer)
		if !errors.Is(err, errGlare) {
			return answer, err
		}

		if attempt == glareAttempts {
			return nil, &Failure{Status: 491, Cause: NormalTemporaryFailure}
		}

		select {
		case <-time.After(l.glareDelay()):
		// The next attempt returns the error of a leg that has ended.
		case <-l.endSignal:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// glareDelay returns a random delay before the next attempt. The side that chose the Call-ID waits
// longer (RFC 3261, section 14.1).
func (l *Leg) glareDelay() time.Duration {
	if l.outgoing {
		return 2100*time.Millisecond + rand.N(1900*time.Millisecond)
	}
	return rand.N(2000 * time.Millisecond)
}

// sendReinvite sends an offer in a re-INVITE and returns the answer. It authenticates once.
func (l *Leg) sendReinvite(offer *SDP) (*SDP, error) {
	request, err := l.beginOffer(offer)
	if err != nil {
		return nil, err
	}
	defer l.endOffer()

	for attempt := 0; ; attempt++ {
		tx, err := l.transports.transactionLayer.Request(l.ctx, request)
		if err != nil {
			return nil, &Failure{Cause: NormalTemporaryFailure}
		}

		answer, err := l.awaitReinviteResponse(tx)
		if err != nil {
			return nil, err
		}

		if attempt > 0 || l.password == "" || !isChallenge(answer) {
			return l.handleReinviteResponse(tx, request, answer, offer)
		}

		request, err = l.transports.authorize(request, answer, l.username, l.password)
		if err != nil {
			return nil, err
		}

		l.mu.Lock()
		l.nextSequence() // authorize increased CSeq
		l.mu.Unlock()
	}
}

// beginOffer returns the re-INVITE with an offer, and rejects other offers until endOffer.
func (l *Leg) beginOffer(offer *SDP) (*sipmsg.Request, error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	switch {
	case l.ended:
		return nil, fault.Conflict("the call has ended")
	case l.localOfferPending || l.remoteOfferPending:
		return nil, errGlare
	}

	request := l.newRequest(sipmsg.INVITE, l.nextSequence())
	request.AppendHeader(l.contact.Clone())
	request.AppendHeader(sipmsg.NewHeader("Allow", allowedMethods))
	request.AppendHeader(sipmsg.NewHeader("Supported", supportedOption))

	if l.sessionInterval > 0 {
		request.AppendHeader(sipmsg.NewHeader("Session-Expires", l.sessionExpires()))
	}
	if err := setSDP(request, offer); err != nil {
		return nil, err
	}

	l.localOfferPending = true
	return request, nil
}

func (l *Leg) endOffer() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.localOfferPending = false
}

// awaitReinviteResponse waits for the final response to a re-INVITE.
func (l *Leg) awaitReinviteResponse(tx *sipmsg.ClientTx) (*sipmsg.Response, error) {
	timeout := time.NewTimer(64 * t1)
	defer timeout.Stop()

	for {
		select {
		case answer := <-tx.Responses():
			if !answer.IsProvisional() {
				return answer, nil
			}
		case <-tx.Done():
		case <-timeout.C:
			tx.Terminate()
		case <-l.endSignal:
			tx.Terminate()
			return nil, fault.Conflict("the call has ended")
		}

		select {
		case <-tx.Done():
			l.Hangup(RecoveryOnTimerExpire) // RFC 3261, section 12.2.1.2: the peer has no such dialog
			return nil, &Failure{Status: 408, Cause: RecoveryOnTimerExpire}
		default:
		}
	}
}

// handleReinviteResponse returns the answer in the final response. It ends the call if the peer does not know
// it any more or has accepted the offer without a usable answer.
func (l *Leg) handleReinviteResponse(tx *sipmsg.ClientTx, request *sipmsg.Request, answer *sipmsg.Response,
	offer *SDP) (*SDP, error) {
	switch {
	case answer.StatusCode == 491:
		return nil, errGlare
	case answer.StatusCode == 481 || answer.StatusCode == 408:
		l.Hangup(NormalTemporaryFailure)
		return nil, &Failure{Status: answer.StatusCode, Cause: NormalTemporaryFailure}
	case !answer.IsSuccess():
		return nil, &Failure{Status: answer.StatusCode, Cause: causeOfResponse(answer)}
	}

	l.mu.Lock()
	l.refreshTarget(answer.Contact())
	ack := l.newAck(request)
	l.mu.Unlock()

	l.sendAcks(tx, ack, func(*sipmsg.Response) bool { return true })
	theirs, err := l.transports.parseSDPSafely(answer.Body())
	if err != nil {
		// The peer accepted without a usable answer: the call cannot continue (RFC 3261, section
		// 14.1).
		l.Hangup(IncompatibleDestination)
		return nil, &Failure{Status: answer.StatusCode, Cause: IncompatibleDestination}
	}

	l.negotiateSessionTimer(answer)
	l.mu.Lock()
	defer l.mu.Unlock()

	l.localSDP, l.remoteSDP = offer, theirs
	return theirs, nil
}

// refreshTarget sets the remote target to the peer's new contact (RFC 3261, section 12.2). The caller
// holds mu.
func (l *Leg) refreshTarget(contact *sipmsg.ContactHeader) {
	if contact != nil {
		l.target = contact.Address
	}
}
