package sip

import (
	"time"

	sipmsg "github.com/emiago/sipgo/sip"
)

// unackedResponse is a 2xx response to an INVITE whose ACK has not arrived.
type unackedResponse struct {
	sequence uint32        // CSeq number of the INVITE
	acked    chan struct{} // closed by the ACK, or when it is no longer waited for
	ackBody  []byte        // body of the ACK
}

// retransmitUntilAck retransmits a 2xx until it is acknowledged (RFC 3261, section 13.3.1.4). It hangs up if no
// ACK arrives.
func (l *Leg) retransmitUntilAck(tx *sipmsg.ServerTx, response *sipmsg.Response) *unackedResponse {
	u := &unackedResponse{sequence: response.CSeq().SeqNo, acked: make(chan struct{})}
	l.stopRetransmission() // a peer that sends another offer has received the earlier answer
	l.mu.Lock()
	l.unacked = u
	l.mu.Unlock()

	l.dialogs.background.Go(func() {
		timeout := time.NewTimer(64 * t1)
		defer timeout.Stop()

		interval := t1
		retransmit := time.NewTimer(interval)
		defer retransmit.Stop()

		for {
			select {
			case <-u.acked:
				return
			case ack := <-tx.Acks(): // from a peer that sends the ACK with the INVITE's branch
				l.ackReceived(u.sequence, ack.Body())
				return
			case <-retransmit.C:
				if err := tx.Respond(response); err != nil {
					l.transports.log.Debug("retransmitting a final response failed", "error", err)
				}
				interval = min(2*interval, t2)
				retransmit.Reset(interval)
			case <-timeout.C:
				l.ackReceived(u.sequence, nil)
				l.Hangup(RecoveryOnTimerExpire)
				return
			case <-l.transports.transactionCtx.Done():
				return
			}
		}
	})

	return u
}

// handleAck handles an ACK.
func (d *dialogs) handleAck(r *sipmsg.Request) {
	leg := d.findDialog(r)
	if leg != nil {
		leg.ackReceived(r.CSeq().SeqNo, r.Body())
	}
}

// ackReceived ends the retransmission of the 2xx with the CSeq number, if it is not acknowledged yet.
func (l *Leg) ackReceived(sequence uint32, body []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unacked != nil && l.unacked.sequence == sequence {
		l.unacked.ackBody = body
		close(l.unacked.acked)
		l.unacked = nil
	}
}

// stopRetransmission stops waiting for an ACK.
func (l *Leg) stopRetransmission() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unacked != nil {
		close(l.unacked.acked)
		l.unacked = nil
	}
}

// awaitAck waits until the peer has acknowledged our 2xx, because a BYE must not be sent before (RFC
// 3261, section 15).
func (l *Leg) awaitAck() {
	l.mu.Lock()
	u := l.unacked
	l.mu.Unlock()

	if u == nil {
		return
	}

	select {
	case <-u.acked:
	case <-l.transports.transactionCtx.Done():
	}
}
