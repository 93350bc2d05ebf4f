package sip

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	sipmsg "github.com/emiago/sipgo/sip"

	"trunkline/internal/fault"
)

// referTimeout is the time a peer has to report the result of a REFER; it is longer than a phone rings.
// The call continues meanwhile.
const referTimeout = 90 * time.Second

// referResponseGrace is the time to wait for the response to a REFER after the call has ended, because the
// peer's BYE may overtake its 202.
const referResponseGrace = 500 * time.Millisecond

// Refer sends a REFER that requests the peer to call user (RFC 3515), at the peer's host, or at ours if
// the peer is a registered phone. It returns nil when the peer reports that user has answered, or hangs
// up because of the REFER; the caller then hangs up the leg. A *Failure means that the peer refused or
// did not reach user, and the leg continues. The error is fault.KindConflict if the leg has ended or
// another REFER is in progress.
func (l *Leg) Refer(ctx context.Context, user string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, referTimeout, &Failure{Status: 408, Cause: NoAnswer})
	defer cancel()

	request, outcome, err := l.beginRefer(user)
	if err != nil {
		return err
	}
	defer l.endRefer()

	if err := l.sendRefer(ctx, request); err != nil {
		return err
	}

	for {
		select {
		case code := <-outcome:
			switch {
			case code < 200:
			case code < 300:
				return nil
			default:
				return &Failure{Status: code, Cause: CauseOfStatus(code)}
			}
		case <-l.endSignal:
			return nil // a peer that accepts a REFER and then hangs up has been transferred
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// beginRefer returns the REFER to a user and a channel of the statuses that the peer reports for it. Other
// transfers are refused until endRefer.
func (l *Leg) beginRefer(user string) (*sipmsg.Request, <-chan int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.ended {
		return nil, nil, fault.Conflict("the call has ended")
	}
	if l.referStatus != nil {
		return nil, nil, fault.Conflict("the call is being transferred already")
	}

	r := l.newRequest(sipmsg.REFER, l.nextSequence())
	r.AppendHeader(l.contact.Clone())
	r.AppendHeader(sipmsg.NewHeader("Refer-To", "<sip:"+EscapeUser(user)+"@"+l.referHost()+">"))
	r.AppendHeader(sipmsg.NewHeader("Referred-By", "<"+l.localAddress.Address.String()+">"))
	l.referStatus = make(chan int, 16)

	return r, l.referStatus, nil
}

// referHost returns the host at which the peer reaches other users. The caller holds mu.
func (l *Leg) referHost() string {
	if l.peerIsPhone {
		return l.remoteAddress.Address.Host // its own domain
	}
	if l.target.Port > 0 {
		return net.JoinHostPort(strings.Trim(l.target.Host, "[]"), strconv.Itoa(l.target.Port))
	}
	return l.target.Host
}

func (l *Leg) endRefer() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.referStatus = nil
}

// sendRefer sends the REFER and returns nil if the peer accepted it.
func (l *Leg) sendRefer(ctx context.Context, r *sipmsg.Request) error {
	requestCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.ctx, func() { time.AfterFunc(referResponseGrace, cancel) })()

	answer, err := l.transports.transact(requestCtx, r)
	if err == nil && isChallenge(answer) && l.password != "" {
		r, err = l.transports.authorize(r, answer, l.username, l.password)
		if err == nil {
			l.mu.Lock()
			l.nextSequence() // authorize increased CSeq
			l.mu.Unlock()
			answer, err = l.transports.transact(requestCtx, r)
		}
	}

	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && l.ctx.Err() != nil:
		return fault.Conflict("the call has ended")
	case err != nil:
		l.transports.log.Debug("no response to a REFER", "error", err)
		return &Failure{Status: 408, Cause: RecoveryOnTimerExpire}
	case answer.StatusCode == 481:
		l.Hangup(NormalTemporaryFailure) // RFC 3261, section 12.2.1.2: the peer has no such dialog
	case answer.IsSuccess():
		return nil
	}

	return &Failure{Status: answer.StatusCode, Cause: causeOfResponse(answer)}
}

// handleNotify handles a NOTIFY with the progress of our REFER. It may arrive before the response to the
// REFER.
func (d *dialogs) handleNotify(r *sipmsg.Request, tx *sipmsg.ServerTx) {
	leg := d.findDialog(r)
	event, _, _ := strings.Cut(headerValue(r, "Event", "o"), ";")
	switch {
	case leg == nil:
		d.transports.replyAndTerminate(tx, r, status{481, "Call/Transaction Does Not Exist"})
	case !strings.EqualFold(strings.TrimSpace(event), "refer"):
		d.transports.reply(tx, r, status{489, "Bad Event"}, sipmsg.NewHeader("Allow-Events", "refer"))
	default:
		response, report := leg.readNotify(r)
		d.transports.reply(tx, r, response)
		report() // after the response, because the result may end the call, and a BYE must not overtake it
	}
}

// readNotify returns the status of the response to a NOTIFY, and a function that reports its content to
// Refer.
func (l *Leg) readNotify(r *sipmsg.Request) (status, func()) {
	l.mu.Lock()
	defer l.mu.Unlock()

	nothing := func() {}
	if r.CSeq().SeqNo <= l.remoteSequence {
		return status{500, "Request Out Of Order"}, nothing
	}

	l.remoteSequence = r.CSeq().SeqNo
	outcome := l.referStatus
	if outcome == nil {
		return status{481, "Subscription Does Not Exist"}, nothing
	}

	code, err := parseSipfrag(r.Body())
	state, _, _ := strings.Cut(headerValue(r, "Subscription-State"), ";")
	terminated := strings.EqualFold(strings.TrimSpace(state), "terminated")

	switch {
	case err != nil && !terminated:
		return status{400, "Bad Request"}, nothing
	case terminated && code < 200:
		code = 480 // the subscription ended without a final result
	}

	return status{200, "OK"}, func() { l.reportReferStatus(outcome, code, terminated) }
}

// reportReferStatus passes the status of a NOTIFY to the REFER that reads outcome.
func (l *Leg) reportReferStatus(outcome chan int, code int, final bool) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.referStatus != outcome {
		return // the REFER has returned
	}

	select {
	case outcome <- code:
	default: // the channel is full; a later NOTIFY has the newer status
		if final {
			select {
			case <-outcome:
			default:
			}
			outcome <- code
		}
	}
}

// parseSipfrag parses the status of a message/sipfrag body (RFC 3420).
func parseSipfrag(body []byte) (int, error) {
	line, _, _ := strings.Cut(string(body[:min(len(body), maxStatusLineBytes)]), "\n")
	fields := strings.Fields(line)
	if len(fields) < 2 || !strings.HasPrefix(fields[0], "SIP/") {
		return 0, fmt.Errorf("sip: NOTIFY without a status")
	}

	code, err := strconv.Atoi(fields[1])
	if err != nil || code < 100 || code > 699 {
		return 0, fmt.Errorf("sip: NOTIFY without a status")
	}

	return code, nil
}

const maxStatusLineBytes = 256

// handleRefer declines a REFER from the peer. The call is unchanged.
func (d *dialogs) handleRefer(r *sipmsg.Request, tx *sipmsg.ServerTx) {
	leg := d.findOrReject(r, tx)
	if leg == nil {
		return
	}
	leg.mu.Lock()
	leg.remoteSequence = max(leg.remoteSequence, r.CSeq().SeqNo)
	leg.mu.Unlock()
	d.transports.reply(tx, r, status{603, "Decline"})
}
