package sip

import (
	"context"
	"net/netip"
	"strings"
	"time"

	sipmsg "github.com/emiago/sipgo/sip"
)

// lookupTimeout is the timeout of the lookups in the directory and the bindings together.
const lookupTimeout = 5 * time.Second

// dispatch handles a request. The stack calls it on a goroutine per request.
func (s *Server) dispatch(r *sipmsg.Request, tx *sipmsg.ServerTx) {
	if s.panics.Do(placeRequest, func() { s.handleRequest(r, tx) }) {
		s.panics.Do(placeRequest,
			func() { s.transports.replyAndTerminate(tx, r, status{500, "Server Internal Error"}) })
	}
}

func (s *Server) handleRequest(r *sipmsg.Request, tx *sipmsg.ServerTx) {
	ctx, cancel := context.WithTimeout(s.transports.transactionCtx, lookupTimeout)
	defer cancel()

	if !hasMandatoryHeaders(r) {
		s.metrics.malformed.Inc()
		s.transports.replyAndTerminate(tx, r, status{400, "Bad Request"})
		return
	}

	switch r.Method {
	case sipmsg.ACK:
		tx.Terminate() // an ACK has no transaction and no response
		s.dialogs.handleAck(r)
	case sipmsg.INVITE:
		s.handleInvite(ctx, r, tx)
	case sipmsg.REGISTER:
		s.registrar.handleRegister(ctx, r, tx)
	case sipmsg.OPTIONS:
		s.handleOptions(r, tx)
	case sipmsg.BYE:
		s.dialogs.handleBye(r, tx)
	case sipmsg.UPDATE:
		s.dialogs.handleUpdate(r, tx)
	case sipmsg.NOTIFY:
		s.dialogs.handleNotify(r, tx)
	case sipmsg.REFER:
		s.dialogs.handleRefer(r, tx)
	case sipmsg.CANCEL:
		// The stack has handled the CANCELs that match an INVITE.
		s.transports.replyAndTerminate(tx, r, status{481, "Call/Transaction Does Not Exist"})
	default:
		s.transports.replyAndTerminate(tx, r, status{405, "Method Not Allowed"})
	}
}

// hasMandatoryHeaders reports whether a request has all mandatory headers.
func hasMandatoryHeaders(r *sipmsg.Request) bool {
	if r.Via() == nil || r.From() == nil || r.To() == nil || r.CallID() == nil || r.CSeq() == nil {
		return false
	}
	tag, _ := r.From().Params.Get("tag")
	return r.CSeq().MethodName == r.Method && (tag != "" || r.Method == sipmsg.CANCEL) && r.Recipient.Host != ""
}

// handleOptions handles an OPTIONS outside or within a dialog.
func (s *Server) handleOptions(r *sipmsg.Request, tx *sipmsg.ServerTx) {
	var headers []sipmsg.Header
	if s.transports.isProven(r) {
		headers = append(headers, sipmsg.NewHeader("Accept", sdpType), sipmsg.NewHeader("Supported", supportedOption))
	}
	s.transports.replyAndTerminate(tx, r, status{200, "OK"}, headers...)
}

// handleInvite handles an INVITE.
func (s *Server) handleInvite(ctx context.Context, r *sipmsg.Request, tx *sipmsg.ServerTx) {
	if r.To().Params.Has("tag") {
		s.dialogs.handleReinvite(r, tx)
		return
	}

	source, err := netip.ParseAddrPort(r.Source())
	if err != nil {
		s.metrics.malformed.Inc()
		tx.Terminate()
		return
	}

	caller, ok := s.registrar.admitCaller(ctx, r, tx, source)
	if !ok {
		return
	}

	unsupported := unsupportedExtension(r)
	if unsupported != "" {
		s.transports.replyAndTerminate(tx, r, status{420, "Bad Extension"},
			sipmsg.NewHeader("Unsupported", unsupported))
		return
	}

	handler := s.findHandler(r.Recipient.User)
	if handler == nil {
		s.transports.replyAndTerminate(tx, r, status{404, "Not Found"})
		return
	}

	offer, err := s.transports.parseSDPSafely(r.Body())
	if err != nil {
		s.transports.replyAndTerminate(tx, r, status{488, "Not Acceptable Here"})
		return
	}

	if !s.dialogs.reserveLeg() {
		s.metrics.countFlood(floodCalls)
		s.transports.replyAndTerminate(tx, r, status{503, "Service Unavailable"}, sipmsg.NewHeader("Retry-After", "5"))
		return
	}

	s.dialogs.background.Go(func() { s.runHandler(r, tx, caller, source, offer, handler) })
}

// unsupportedExtension returns an option tag of Require that is not supported, or "".
func unsupportedExtension(r *sipmsg.Request) string {
	for _, h := range r.GetHeaders("Require") {
		for _, option := range strings.Split(h.Value(), ",") {
			option = strings.TrimSpace(option)
			if option != "" && !strings.EqualFold(option, supportedOption) {
				return option
			}
		}
	}
	return ""
}

// runHandler has the handler of a call serve it.
func (s *Server) runHandler(r *sipmsg.Request, tx *sipmsg.ServerTx, caller User, source netip.AddrPort, offer *SDP,
	handler Handler) {
	ctx, cancel := context.WithCancel(s.handlerCtx)
	defer cancel()

	invite := &Invite{
		dialogs: s.dialogs, transports: s.transports, request: r, tx: tx, tag: sipmsg.GenerateTagN(16),
		callingUser: caller, peerAddr: source, remoteOffer: offer,
	}

	// Neither callback may block or call the transaction.
	cancelUnlessAccepted := func() {
		if !invite.accepted.Load() {
			cancel()
		}
	}
	// Either is false if the transaction has ended already: there is nobody left to answer.
	if !tx.OnCancel(func(*sipmsg.Request) { cancelUnlessAccepted() }) ||
		!tx.OnTerminate(func(string, error) { cancelUnlessAccepted() }) {
		s.dialogs.releaseLeg()
		return
	}

	if err := s.transports.sendResponse(tx, newResponse(r, status{100, "Trying"}, "")); err != nil {
		s.log.Debug("INVITE transaction ended before it was handled", "error", err)
	}
	defer invite.close()

	handler.ServeInvite(ctx, invite)
}
