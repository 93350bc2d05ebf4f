package sip

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	sipmsg "github.com/emiago/sipgo/sip"
	"github.com/google/uuid"
)

// Target is the destination of a call.
type Target struct {
	URI         string
	Destination string // host:port that all requests of the call are sent to; "" leaves it to the URI
	Transport   string // UDP, TCP or TLS; "" selects that of the URI, else UDP
}

// DefaultPort returns the port of an address without one, for a transport; "" is UDP.
func DefaultPort(transport string) int { return sipmsg.DefaultPort(cmp.Or(transport, "UDP")) }

// Party is one side of a call, as shown in its From or To header.
type Party struct {
	Name string // display name
	User string
	Host string
}

// Header is an additional header of a request.
type Header struct{ Name, Value string }

// OutgoingCall has the parameters of a call to place.
type OutgoingCall struct {
	Target   Target
	CallID   string // default: NewCallID()
	From, To Party
	Offer    *SDP
	Headers  []Header
	// Username and Password are the credentials for the target's challenge.
	Username, Password string
	// OnProgress is called with each provisional response, in order, by the goroutine that called
	// Dial. It may be nil.
	OnProgress func(Progress)
	// OnOffer answers the peer's later offers; nil refuses them.
	OnOffer OfferFunc
}

// Progress is a provisional response.
type Progress struct {
	Status int
	SDP    *SDP // for early media; nil if absent
}

// Failure is the error of a call that was not answered.
type Failure struct {
	Status int // final SIP status; 0 if there was none
	Cause  Cause
}

func (f *Failure) Error() string {
	return fmt.Sprintf("the call failed with %s (SIP %d)", f.Cause, f.Status)
}

// FailureCause returns the cause of the *Failure in err's chain, or NORMAL_TEMPORARY_FAILURE for other
// errors.
func FailureCause(err error) Cause {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f.Cause
	}
	return NormalTemporaryFailure
}

// NewCallID returns a new random Call-ID.
func NewCallID() string { return uuid.NewString() }

// dialLeg is Server.Dial.
func (d *dialogs) dialLeg(ctx context.Context, call OutgoingCall) (*Leg, error) {
	if !d.reserveLeg() {
		return nil, d.countFailure(&Failure{Cause: SwitchCongestion})
	}

	leg, err := d.dialOnce(ctx, call)
	if err != nil {
		d.releaseLeg()
		return nil, d.countFailure(err)
	}

	d.metrics.countSetup(NormalClearing)
	return leg, nil
}

// countFailure counts a call that was not answered, and returns err.
func (d *dialogs) countFailure(err error) error {
	d.metrics.countSetup(FailureCause(err))
	return err
}

func (d *dialogs) dialOnce(ctx context.Context, call OutgoingCall) (*Leg, error) {
	invite, err := d.transports.newInvite(call)
	if err != nil {
		return nil, err
	}

	for attempt := 0; ; attempt++ {
		tx, err := d.transports.transactionLayer.Request(ctx, invite)
		if err != nil {
			return nil, d.unsentFailure(ctx, err)
		}

		answer, err := d.awaitFinalResponse(ctx, tx, invite, call.OnProgress)
		if err != nil {
			return nil, err
		}

		switch {
		case answer.IsSuccess():
			return d.handleAnswer(tx, invite, answer, call)
		case attempt == 0 && isChallenge(answer) && call.Password != "":
			invite, err = d.transports.authorize(invite, answer, call.Username, call.Password)
			if err != nil {
				return nil, fmt.Errorf("answering a challenge: %w", err)
			}
		default:
			return nil, &Failure{Status: answer.StatusCode, Cause: causeOfResponse(answer)}
		}
	}
}

// causeOfResponse returns the cause of a refusal: that of its Reason header, or of its status.
func causeOfResponse(answer *sipmsg.Response) Cause {
	reason := answer.GetHeader("Reason")
	if reason != nil {
		cause := causeOfReason(reason.Value())
		if cause != NormalClearing {
			return cause
		}
	}
	return CauseOfStatus(answer.StatusCode)
}

// unsentFailure returns the error of a request that could not be sent.
func (d *dialogs) unsentFailure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return cancelledFailure(ctx)
	}
	d.log.DebugContext(ctx, "sending an INVITE failed", "error", err)
	return &Failure{Cause: NormalTemporaryFailure}
}

// ErrAnsweredElsewhere is the cancellation cause of a call that another of the user's phones has answered. The
// CANCEL has a Reason header for it, so that the phone shows no missed call.
var ErrAnsweredElsewhere = errors.New("sip: answered elsewhere")

// cancelledFailure returns the failure of a call whose ctx has ended.
func cancelledFailure(ctx context.Context) *Failure {
	if errors.Is(context.Cause(ctx), ErrAnsweredElsewhere) {
		return &Failure{Status: 487, Cause: LoseRace}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &Failure{Status: 487, Cause: NoAnswer}
	}
	return &Failure{Status: 487, Cause: OriginatorCancel}
}

// awaitFinalResponse returns the final response to an INVITE.
func (d *dialogs) awaitFinalResponse(ctx context.Context, tx *sipmsg.ClientTx, invite *sipmsg.Request,
	progress func(Progress)) (*sipmsg.Response, error) {
	provisional := false // a response has arrived: a CANCEL may be sent
	for {
		select {
		case answer := <-tx.Responses():
			if !answer.IsProvisional() {
				return answer, nil
			}

			provisional = true
			if progress != nil {
				progress(Progress{Status: answer.StatusCode, SDP: d.transports.parseOptionalSDP(answer.Body())})
			}
		case <-tx.Done():
			if errors.Is(tx.Err(), sipmsg.ErrTransactionTimeout) {
				return nil, &Failure{Status: 408, Cause: RecoveryOnTimerExpire}
			}
			return nil, &Failure{Cause: NormalTemporaryFailure}
		case <-ctx.Done():
			failure := cancelledFailure(ctx)
			d.background.Go(func() { d.cancelInvite(tx, newCancel(invite, failure.Cause), invite, provisional) })
			return nil, failure
		}
	}
}

// parseOptionalSDP parses an optional session description. It returns nil if the body has none.
func (t *transports) parseOptionalSDP(body []byte) *SDP {
	if len(body) == 0 {
		return nil
	}
	description, err := t.parseSDPSafely(body)
	if err != nil {
		return nil
	}
	return description
}

// cancelTimeout is the time a peer has to end a cancelled call (RFC 3261, section 9.1: 64*T1).
const cancelTimeout = 64 * t1

// cancelInvite cancels an INVITE. provisional means that a response has arrived, before which no CANCEL may be sent. If
// the peer answers with 2xx meanwhile, the dialog is ended with a BYE.
func (d *dialogs) cancelInvite(tx *sipmsg.ClientTx, cancel, invite *sipmsg.Request, provisional bool) {
	defer tx.Terminate()

	timeout := time.NewTimer(cancelTimeout)
	defer timeout.Stop()

	if provisional {
		d.sendCancel(cancel)
	}

	for {
		select {
		case answer := <-tx.Responses():
			switch {
			case answer.IsSuccess():
				d.endUnwantedDialog(invite, answer)
				return
			case !answer.IsProvisional():
				return
			case !provisional:
				provisional = true
				d.sendCancel(cancel)
			}
		case <-tx.Done():
			return
		case <-timeout.C:
			return
		case <-d.transports.transactionCtx.Done():
			return
		}
	}
}

func (d *dialogs) sendCancel(cancel *sipmsg.Request) {
	d.background.Go(func() {
		_, err := d.transports.transact(d.transports.transactionCtx, cancel)
		if err != nil {
			d.log.Debug("no response to a CANCEL", "error", err)
		}
	})
}
