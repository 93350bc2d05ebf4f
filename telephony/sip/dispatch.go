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
		s.panics.Do(placeRequest, func() { s.replyAndTerminate(tx, r, status{500, "Server Internal Error"}) })
	}
}

func (s *Server) handleRequest(r *sipmsg.Request, tx *sipmsg.ServerTx) {
	ctx, cancel := context.WithTimeout(s.transactionCtx, lookupTimeout)
	defer cancel()
	if !hasMandatoryHeaders(r) {
		s.metrics.malformed.Inc()
		s.replyAndTerminate(tx, r, status{400, "Bad Request"})
		return
	}
	switch r.Method {
	case sipmsg.ACK:
		tx.Terminate() // an ACK has no transaction and no response
		s.handleAck(r)
	case sipmsg.INVITE:
		s.handleInvite(ctx, r, tx)
	case sipmsg.REGISTER:
		s.handleRegister(ctx, r, tx)
	case sipmsg.OPTIONS:
		s.handleOptions(r, tx)
	case sipmsg.BYE:
		s.handleBye(r, tx)
	case sipmsg.UPDATE:
		s.handleUpdate(r, tx)
	case sipmsg.NOTIFY:
		s.handleNotify(r, tx)
	case sipmsg.REFER:
		s.handleRefer(r, tx)
	case sipmsg.CANCEL:
		// The stack has handled the CANCELs that match an INVITE.
		s.replyAndTerminate(tx, r, status{481, "Call/Transaction Does Not Exist"})
	default:
		s.replyAndTerminate(tx, r, status{405, "Method Not Allowed"})
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

// newResponse returns a response to r. tag is the local tag of a dialog; "" generates one.
func newResponse(r *sipmsg.Request, as status, tag string) *sipmsg.Response {
	response := sipmsg.NewResponseFromRequest(r, as.code, as.reason, nil)
	to := response.To()
	if tag != "" && to != nil && as.code != 100 {
		to.Params.Add("tag", tag)
	}
	return response
}

// sendResponse sends a response and counts it.
func (s *Server) sendResponse(tx *sipmsg.ServerTx, response *sipmsg.Response) error {
	if err := tx.Respond(response); err != nil {
		return err
	}
	s.metrics.countResponse(response)
	return nil
}

// handleOptions handles an OPTIONS outside or within a dialog.
func (s *Server) handleOptions(r *sipmsg.Request, tx *sipmsg.ServerTx) {
	var headers []sipmsg.Header
	if s.isProven(r) {
		headers = append(headers, sipmsg.NewHeader("Accept", sdpType), sipmsg.NewHeader("Supported", supportedOption))
	}
	s.replyAndTerminate(tx, r, status{200, "OK"}, headers...)
}

// isProven reports whether the sender of a request receives our messages. A sender whose address may be
// forged gets short responses only (guard.maySend).
func (s *Server) isProven(r *sipmsg.Request) bool {
	if r.Transport() != "UDP" {
		return true
	}
	source, err := netip.ParseAddrPort(r.Source())
	return err == nil && s.guard.isProven(source)
}

// markProven records that the sender of a message receives our messages.
func (s *Server) markProven(m sipmsg.Message) {
	if m.Transport() != "UDP" {
		return
	}
	source, err := netip.ParseAddrPort(m.Source())
	if err == nil {
		s.guard.markProven(source)
	}
}

// shortTagLength is the length of the tag in responses without a dialog.
const shortTagLength = 8

// reply sends a final response, which retransmissions of the request get again.
func (s *Server) reply(tx *sipmsg.ServerTx, r *sipmsg.Request, as status, headers ...sipmsg.Header) {
	tag := ""
	to := r.To()
	if to != nil && !to.Params.Has("tag") {
		tag = sipmsg.GenerateTagN(shortTagLength)
	}
	response := newResponse(r, as, tag)
	proven := s.isProven(r)
	if proven || as.code == 405 {
		response.AppendHeader(sipmsg.NewHeader("Allow", allowedMethods))
	}
	if !proven {
		response.RemoveHeader("Content-Length") // optional over UDP (RFC 3261, section 20.14)
	}
	for _, h := range headers {
		response.AppendHeader(h)
	}
	if err := s.sendResponse(tx, response); err != nil {
		s.log.Debug("sending a response failed", "status", as.code, "error", err)
	}
}

// replyAndTerminate sends one response and terminates the transaction, so that unauthenticated requests
// use no memory and no retransmissions amplify them.
func (s *Server) replyAndTerminate(tx *sipmsg.ServerTx, r *sipmsg.Request, as status, headers ...sipmsg.Header) {
	s.reply(tx, r, as, headers...)
	tx.Terminate()
}

// findDialog returns the leg that a request belongs to, or nil.
func (s *Server) findDialog(r *sipmsg.Request) *Leg {
	ours, _ := r.To().Params.Get("tag")
	theirs, _ := r.From().Params.Get("tag")
	s.mu.Lock()
	leg := s.dialogs[dialogKey(r.CallID().Value(), ours, theirs)]
	s.mu.Unlock()
	if leg != nil {
		s.markProven(r) // it has our tag
	}
	return leg
}

// handleBye handles a BYE.
func (s *Server) handleBye(r *sipmsg.Request, tx *sipmsg.ServerTx) {
	leg := s.findDialog(r)
	if leg == nil {
		s.replyAndTerminate(tx, r, status{481, "Call/Transaction Does Not Exist"})
		return
	}
	s.reply(tx, r, status{200, "OK"})
	leg.endByPeer(causeOfReason(headerValue(r, "Reason")))
}

// endByPeer ends the leg on the peer's BYE. If the leg has ended already, our BYE crossed theirs and
// still completes.
func (l *Leg) endByPeer(cause Cause) {
	l.stopRetransmission()
	if l.markEnded(cause) {
		l.removeDialog()
	}
}

// handleInvite handles an INVITE.
func (s *Server) handleInvite(ctx context.Context, r *sipmsg.Request, tx *sipmsg.ServerTx) {
	if r.To().Params.Has("tag") {
		s.handleReinvite(r, tx)
		return
	}
	source, err := netip.ParseAddrPort(r.Source())
	if err != nil {
		s.metrics.malformed.Inc()
		tx.Terminate()
		return
	}
	caller, ok := s.admitCaller(ctx, r, tx, source)
	if !ok {
		return
	}
	unsupported := unsupportedExtension(r)
	if unsupported != "" {
		s.replyAndTerminate(tx, r, status{420, "Bad Extension"}, sipmsg.NewHeader("Unsupported", unsupported))
		return
	}
	handler := s.findHandler(r.Recipient.User)
	if handler == nil {
		s.replyAndTerminate(tx, r, status{404, "Not Found"})
		return
	}
	offer, err := s.parseSessionSafely(r.Body())
	if err != nil {
		s.replyAndTerminate(tx, r, status{488, "Not Acceptable Here"})
		return
	}
	if !s.reserveLeg() {
		s.metrics.countFlood(floodCalls)
		s.replyAndTerminate(tx, r, status{503, "Service Unavailable"}, sipmsg.NewHeader("Retry-After", "5"))
		return
	}
	s.background.Go(func() { s.callHandler(r, tx, caller, source, offer, handler) })
}

// admitCaller checks the caller of an INVITE and returns its user. If it returns false, it has answered.
func (s *Server) admitCaller(ctx context.Context, r *sipmsg.Request, tx *sipmsg.ServerTx,
	source netip.AddrPort) (User, bool) {
	if s.guard.isTrusted(source.Addr()) {
		return User{}, true
	}
	from := r.From().Address
	caller, ok := s.authenticateRequest(ctx, r, tx,
		expectedCredentials{source, from.Host, from.User, proxyAuthenticate})
	if !ok {
		return User{}, false
	}
	registered, err := s.Registrations.Exist(ctx, caller.AccountID, caller.Extension)
	if err != nil {
		s.log.Warn("admitting a call failed", "error", err)
		s.replyAndTerminate(tx, r, status{503, "Service Unavailable"}, sipmsg.NewHeader("Retry-After", "5"))
		return User{}, false
	}
	if !registered {
		s.replyAndTerminate(tx, r, status{403, "Forbidden"})
	}
	return caller, registered
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

// callHandler calls the handler of a call.
func (s *Server) callHandler(r *sipmsg.Request, tx *sipmsg.ServerTx, caller User, source netip.AddrPort, offer *Session,
	handler Handler) {
	ctx, cancel := context.WithCancel(s.handlerCtx)
	defer cancel()
	invite := &Invite{
		server: s, request: r, tx: tx, tag: sipmsg.GenerateTagN(16),
		callingUser: caller, peerAddr: source, remoteOffer: offer,
	}
	// Neither callback may block or call the transaction.
	cancelUnlessAccepted := func() {
		if !invite.accepted.Load() {
			cancel()
		}
	}
	if !tx.OnCancel(func(*sipmsg.Request) { cancelUnlessAccepted() }) ||
		!tx.OnTerminate(func(string, error) { cancelUnlessAccepted() }) {
		s.releaseLeg()
		return
	}
	if err := s.sendResponse(tx, newResponse(r, status{100, "Trying"}, "")); err != nil {
		s.log.Debug("INVITE transaction ended before it was handled", "error", err)
	}
	defer invite.close()
	handler.ServeInvite(ctx, invite)
}
