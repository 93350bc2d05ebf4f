package sip

import (
	"log/slog"
	"maps"
	"slices"
	"sync"

	sipmsg "github.com/emiago/sipgo/sip"
)

// dialogs are the calls of the server: legs, and INVITEs without a final answer.
type dialogs struct {
	transports *transports
	config     Config
	metrics    *metrics
	log        *slog.Logger
	background *tasks // of calls: what outlives the call that began it

	mu       sync.Mutex
	byKey    map[string]*Leg // by dialogKey
	legCount int             // legs and unanswered INVITEs
	closing  bool            // new calls are rejected
}

func newDialogs(t *transports) *dialogs {
	return &dialogs{transports: t, config: t.config, metrics: t.metrics, log: t.log, background: newTasks(t.panics),
		byKey: map[string]*Leg{}}
}

// close rejects new calls and sends a BYE on the remaining legs. The channel is closed when their transactions
// are over.
func (d *dialogs) close() (settled <-chan struct{}) {
	d.mu.Lock()
	d.closing = true
	legs := slices.Collect(maps.Values(d.byKey))
	d.mu.Unlock()
	for _, leg := range legs {
		leg.Hangup(NormalTemporaryFailure)
	}
	return d.background.close()
}

// reserveLeg reserves capacity for one leg and reports whether any was left; releaseLeg frees it.
func (d *dialogs) reserveLeg() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing || d.legCount >= d.config.Limits.MaxCalls {
		return false
	}
	d.legCount++
	d.metrics.calls.Inc()
	return true
}

func (d *dialogs) releaseLeg() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.legCount--
	d.metrics.calls.Dec()
}

// removeLeg removes a leg and releases its capacity.
func (d *dialogs) removeLeg(leg *Leg) {
	d.mu.Lock()
	delete(d.byKey, leg.dialogKey())
	d.mu.Unlock()
	d.releaseLeg()
}

// findDialog returns the leg that a request belongs to, or nil.
func (d *dialogs) findDialog(r *sipmsg.Request) *Leg {
	ours, _ := r.To().Params.Get("tag")
	theirs, _ := r.From().Params.Get("tag")
	d.mu.Lock()
	leg := d.byKey[dialogKey(r.CallID().Value(), ours, theirs)]
	d.mu.Unlock()
	if leg != nil {
		d.transports.markProven(r) // it has our tag
	}
	return leg
}

// findOrReject returns the leg that a request belongs to. If it returns nil, it has answered.
func (d *dialogs) findOrReject(r *sipmsg.Request, tx *sipmsg.ServerTx) *Leg {
	leg := d.findDialog(r)
	if leg == nil {
		d.transports.replyAndTerminate(tx, r, status{481, "Call/Transaction Does Not Exist"})
	}
	return leg
}

// handleBye handles a BYE.
func (d *dialogs) handleBye(r *sipmsg.Request, tx *sipmsg.ServerTx) {
	leg := d.findOrReject(r, tx)
	if leg == nil {
		return
	}
	d.transports.reply(tx, r, status{200, "OK"})
	leg.endByPeer(causeOfReason(headerValue(r, "Reason")))
}

// endByPeer ends the leg on the peer's BYE. If the leg has ended already, our BYE crossed theirs and
// still completes.
func (l *Leg) endByPeer(cause Cause) {
	l.stopRetransmission()
	if l.markEnded(cause) {
		l.dialogs.removeLeg(l)
	}
}
