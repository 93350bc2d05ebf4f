package sip

import (
	"context"
	"errors"
	"fmt"
	"time"

	sipmsg "github.com/emiago/sipgo/sip"
	"github.com/google/uuid"
)

// Target is where a call goes.
type Target struct {
	URI         string
	Destination string // host:port to send to; "" what the URI says
	Transport   string // UDP or TCP; "" UDP, or what the URI says
}

// Party is one side of a call as its address shows it.
type Party struct {
	Name string // display name
	User string
	Host string
}

// Header is a header of a request that SIP gives no meaning here.
type Header struct{ Name, Value string }

// Call is a call to be placed.
type Call struct {
	Target   Target
	CallID   string // NewCallID when empty
	From, To Party
	Offer    *Session
	Headers  []Header
	// Username and Password answer the target's challenge.
	Username, Password string
	// OnProgress is told of provisional answers, in order, by the goroutine
	// that dials; nil is told nothing.
	OnProgress func(Progress)
	// OnOffer answers the peer's later offers; nil refuses them.
	OnOffer OfferFunc
}

// Progress is a provisional answer.
type Progress struct {
	Status  int
	Session *Session // where the peer's early media comes from; nil: none
}

// Failure is why a call that was dialled got no answer.
type Failure struct {
	Status int // the final SIP status; 0 when there was none
	Cause  Cause
}

func (f *Failure) Error() string {
	return fmt.Sprintf("the call failed with %s (SIP %d)", f.Cause, f.Status)
}

// FailureCause is the cause in err's chain; of another error, a temporary
// failure.
func FailureCause(err error) Cause {
	var f *Failure
	if errors.As(err, &f) {
		return f.Cause
	}
	return NormalTemporaryFailure
}

// NewCallID makes a Call-ID.
func NewCallID() string { return uuid.NewString() }

// Dial places a call and returns its leg once it is answered, or the *Failure.
// When ctx ends first the call is cancelled in the background: the failure is
// NO_ANSWER when its deadline had passed, LOSE_RACE when its cause is
// ErrElsewhere, else ORIGINATOR_CANCEL.
func (s *Server) Dial(ctx context.Context, call Call) (*Leg, error) {
	if !s.reserve() {
		return nil, s.failed(&Failure{Cause: SwitchCongestion})
	}
	leg, err := s.dialOnce(ctx, call)
	if err != nil {
		s.release()
		return nil, s.failed(err)
	}
	s.metrics.setup(NormalClearing)
	return leg, nil
}

func (s *Server) failed(err error) error {
	s.metrics.setup(FailureCause(err))
	return err
}

func (s *Server) dialOnce(ctx context.Context, call Call) (*Leg, error) {
	invite, err := s.newInvite(call)
	if err != nil {
		return nil, err
	}
	for attempt := 0; ; attempt++ {
		tx, err := s.agent.TransactionLayer().Request(ctx, invite)
		if err != nil {
			return nil, s.unsent(ctx, err)
		}
		answer, err := s.await(ctx, tx, invite, call.OnProgress)
		if err != nil {
			return nil, err
		}
		switch {
		case answer.IsSuccess():
			return s.answered(tx, invite, answer, call)
		case attempt == 0 && isChallenge(answer) && call.Password != "":
			if invite, err = authorize(invite, answer, call.Username, call.Password); err != nil {
				return nil, fmt.Errorf("answering a challenge: %w", err)
			}
		default:
			return nil, &Failure{Status: answer.StatusCode, Cause: callCause(answer)}
		}
	}
}

func callCause(answer *sipmsg.Response) Cause {
	if reason := answer.GetHeader("Reason"); reason != nil {
		if cause := causeOfReason(reason.Value()); cause != NormalClearing {
			return cause
		}
	}
	return CauseOfStatus(answer.StatusCode)
}

// unsent is a request that did not leave.
func (s *Server) unsent(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return cancelled(ctx)
	}
	s.log.DebugContext(ctx, "sending an INVITE failed", "error", err)
	return &Failure{Cause: NormalTemporaryFailure}
}

// ErrElsewhere is the cause of a context that ends because another of the
// user's phones has answered: the one that rings is told, and shows no missed
// call.
var ErrElsewhere = errors.New("sip: answered elsewhere")

func cancelled(ctx context.Context) *Failure {
	if errors.Is(context.Cause(ctx), ErrElsewhere) {
		return &Failure{Status: 487, Cause: LoseRace}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &Failure{Status: 487, Cause: NoAnswer}
	}
	return &Failure{Status: 487, Cause: OriginatorCancel}
}

// await returns the final answer to an INVITE.
func (s *Server) await(ctx context.Context, tx *sipmsg.ClientTx, invite *sipmsg.Request, progress func(Progress)) (*sipmsg.Response, error) {
	ringing := false
	for {
		select {
		case answer := <-tx.Responses():
			if !answer.IsProvisional() {
				return answer, nil
			}
			ringing = true
			if progress != nil {
				progress(Progress{Status: answer.StatusCode, Session: sessionOf(answer.Body())})
			}
		case <-tx.Done():
			if errors.Is(tx.Err(), sipmsg.ErrTransactionTimeout) {
				return nil, &Failure{Status: 408, Cause: RecoveryOnTimerExpire}
			}
			return nil, &Failure{Cause: NormalTemporaryFailure}
		case <-ctx.Done():
			failure := cancelled(ctx)
			s.background.Go(func() { s.cancel(tx, newCancel(invite, failure.Cause), invite, ringing) })
			return nil, failure
		}
	}
}

// sessionOf reads a body that may not be there.
func sessionOf(body []byte) *Session {
	if len(body) == 0 {
		return nil
	}
	session, err := ParseSession(body)
	if err != nil {
		return nil
	}
	return session
}

// cancelLimit is how long a peer may take to end a cancelled call (RFC 3261,
// 9.1: 64*T1).
const cancelLimit = 64 * t1

// cancel ends a call that nobody waits for any more. A CANCEL may only follow
// a provisional answer; a peer that answered meanwhile gets a BYE.
func (s *Server) cancel(tx *sipmsg.ClientTx, cancel, invite *sipmsg.Request, ringing bool) {
	defer tx.Terminate()
	limit := time.NewTimer(cancelLimit)
	defer limit.Stop()
	if ringing {
		s.sendCancel(cancel)
	}
	for {
		select {
		case answer := <-tx.Responses():
			switch {
			case answer.IsSuccess():
				s.turnAway(invite, answer)
				return
			case !answer.IsProvisional():
				return
			case !ringing:
				ringing = true
				s.sendCancel(cancel)
			}
		case <-tx.Done():
			return
		case <-limit.C:
			return
		case <-s.ctx.Done():
			return
		}
	}
}

func (s *Server) sendCancel(cancel *sipmsg.Request) {
	s.background.Go(func() {
		if _, err := s.transact(s.ctx, cancel); err != nil {
			s.log.Debug("no response to a CANCEL", "error", err)
		}
	})
}
