package sip

import (
	"net/netip"

	sipmsg "github.com/emiago/sipgo/sip"
)

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
func (t *transports) sendResponse(tx *sipmsg.ServerTx, response *sipmsg.Response) error {
	if err := tx.Respond(response); err != nil {
		return err
	}
	t.metrics.countResponse(response)
	return nil
}

// isProven reports whether the sender of a request receives our messages. A sender whose address may be
// forged gets short responses only (sourceLimiter.maySend).
func (t *transports) isProven(r *sipmsg.Request) bool {
	if r.Transport() != "UDP" {
		return true
	}
	source, err := netip.ParseAddrPort(r.Source())
	return err == nil && t.limiter.isProven(source)
}

// markProven records that the sender of a message receives our messages.
func (t *transports) markProven(m sipmsg.Message) {
	if m.Transport() != "UDP" {
		return
	}
	source, err := netip.ParseAddrPort(m.Source())
	if err == nil {
		t.limiter.markProven(source)
	}
}

// shortTagLength is the length of the tag in responses without a dialog.
const shortTagLength = 8

// reply sends a final response, which retransmissions of the request get again.
func (t *transports) reply(tx *sipmsg.ServerTx, r *sipmsg.Request, as status, headers ...sipmsg.Header) {
	tag := ""
	to := r.To()
	if to != nil && !to.Params.Has("tag") {
		tag = sipmsg.GenerateTagN(shortTagLength)
	}

	response := newResponse(r, as, tag)
	proven := t.isProven(r)
	if proven || as.code == 405 {
		response.AppendHeader(sipmsg.NewHeader("Allow", allowedMethods))
	}
	if !proven {
		response.RemoveHeader("Content-Length") // optional over UDP (RFC 3261, section 20.14)
	}

	for _, h := range headers {
		response.AppendHeader(h)
	}

	if err := t.sendResponse(tx, response); err != nil {
		t.log.Debug("sending a response failed", "status", as.code, "error", err)
	}
}

// replyAndTerminate sends one response and terminates the transaction, so that unauthenticated requests
// use no memory and no retransmissions amplify them.
func (t *transports) replyAndTerminate(tx *sipmsg.ServerTx, r *sipmsg.Request, as status, headers ...sipmsg.Header) {
	t.reply(tx, r, as, headers...)
	tx.Terminate()
}
