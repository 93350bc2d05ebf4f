package sip

import (
	"context"
	"net/netip"
	"strconv"
	"time"

	sipmsg "github.com/emiago/sipgo/sip"
)

// handleRegister handles a REGISTER (RFC 3261, section 10.3).
func (s *Server) handleRegister(ctx context.Context, r *sipmsg.Request, tx *sipmsg.ServerTx) {
	source, err := netip.ParseAddrPort(r.Source())
	if err != nil {
		s.metrics.malformed.Inc()
		tx.Terminate()
		return
	}
	address := r.To().Address
	user, ok := s.authenticateRequest(ctx, r, tx,
		expectedCredentials{source, address.Host, address.User, wwwAuthenticate})
	if !ok {
		return
	}
	changes, refusal := s.Registrations.readContacts(r, user, source)
	if refusal.code != 0 {
		headers := []sipmsg.Header{}
		if refusal.code == 423 {
			headers = append(headers, sipmsg.NewHeader("Min-Expires", strconv.Itoa(int(s.config.MinExpires.Seconds()))))
		}
		s.reply(tx, r, refusal, headers...)
		return
	}
	aor := AOR{AccountID: user.AccountID, Extension: user.Extension}
	bindings, refusal, err := s.Registrations.apply(ctx, aor, changes)
	if err != nil {
		s.log.Warn("storing a registration failed", "error", err)
		s.reply(tx, r, status{503, "Service Unavailable"}, sipmsg.NewHeader("Retry-After", "5"))
		return
	}
	if refusal.code != 0 {
		s.reply(tx, r, refusal)
		return
	}
	headers := make([]sipmsg.Header, 0, len(bindings))
	for _, b := range bindings {
		expires := strconv.Itoa(max(int(time.Until(b.Expires).Round(time.Second).Seconds()), 1))
		headers = append(headers, sipmsg.NewHeader("Contact", "<"+b.Contact+">;expires="+expires))
	}
	s.reply(tx, r, status{200, "OK"}, headers...)
}
