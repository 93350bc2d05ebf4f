package sip

import (
	"context"
	"net/netip"
	"slices"
	"strconv"
	"time"

	sipmsg "github.com/emiago/sipgo/sip"

	"trunkline/internal/retry"
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
	changes, refusal := s.readContacts(r, user, source)
	if refusal.code != 0 {
		headers := []sipmsg.Header{}
		if refusal.code == 423 {
			headers = append(headers, sipmsg.NewHeader("Min-Expires", strconv.Itoa(int(s.config.MinExpires.Seconds()))))
		}
		s.reply(tx, r, refusal, headers...)
		return
	}
	aor := AOR{AccountID: user.AccountID, Extension: user.Extension}
	bindings, refusal, err := s.applyChanges(ctx, aor, changes)
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

// registerChanges is the content of a REGISTER: contacts to register or, with a zero Expires, to remove; all
// of them for "*".
type registerChanges struct {
	contacts  []Binding
	removeAll bool
	callID    string
	sequence  uint32
}

const maxContact = 512

func (s *Server) readContacts(r *sipmsg.Request, user User, source netip.AddrPort) (registerChanges, status) {
	now := time.Now()
	requested := registerChanges{callID: r.CallID().Value(), sequence: r.CSeq().SeqNo}
	defaultExpires, hasDefault := parseSeconds(headerValue(r, "Expires"))
	for _, h := range r.GetHeaders("Contact") {
		contact, ok := h.(*sipmsg.ContactHeader)
		if !ok {
			return requested, status{400, "Bad Contact"}
		}
		if contact.Address.Wildcard {
			requested.removeAll = true
			continue
		}
		lifetime, ok := parseSeconds(contact.Params.GetOr("expires", ""))
		switch {
		case !ok && hasDefault:
			lifetime = defaultExpires
		case !ok:
			lifetime = maxExpires
		}
		if lifetime > 0 && lifetime < s.config.MinExpires {
			return requested, status{423, "Interval Too Brief"}
		}
		uri := contact.Address.String()
		scheme := contact.Address.Scheme
		if scheme != "sip" && (scheme != "sips" || r.Transport() != transportTLS) || contact.Address.Host == "" ||
			len(uri) > maxContact || len(requested.contacts) >= s.config.Limits.MaxContacts {
			return requested, status{400, "Bad Contact"}
		}
		b := Binding{
			AOR: AOR{AccountID: user.AccountID, Extension: user.Extension}, Domain: user.Domain, UserID: user.UserID,
			Contact: uri, Instance: truncate(contact.Params.GetOr("+sip.instance", "")), Source: source,
			Transport: r.Transport(),
			UserAgent: truncate(sanitizeHeader(headerValue(r, "User-Agent"))), CallID: requested.callID,
			CSeq: requested.sequence, Since: now,
		}
		if lifetime > 0 {
			b.Expires = now.Add(min(lifetime, maxExpires))
		}
		requested.contacts = append(requested.contacts, b)
	}
	if requested.removeAll && (len(requested.contacts) > 0 || !hasDefault || defaultExpires != 0) {
		return requested, status{400, "Bad Request"} // RFC 3261, section 10.3, step 6
	}
	return requested, status{}
}

func truncate(text string) string { return text[:min(len(text), 128)] }

// applyChanges applies the changes and returns the resulting bindings.
func (s *Server) applyChanges(ctx context.Context, aor AOR, requested registerChanges) ([]Binding, status, error) {
	current, err := s.bindings.List(ctx, aor)
	if err != nil {
		return nil, status{}, err
	}
	for _, b := range current {
		if b.CallID == requested.callID && b.CSeq >= requested.sequence &&
			(requested.removeAll || len(requested.contacts) > 0) {
			return nil, status{500, "Request Out Of Order"}, nil
		}
	}
	if requested.removeAll {
		return nil, status{}, s.unregister(ctx, current, UnregisteredByDevice)
	}
	for _, b := range requested.contacts {
		current, err = s.applyContact(ctx, current, b)
		if err != nil {
			return nil, status{}, err
		}
	}
	return current, status{}, nil
}

// applyContact registers or removes one contact and returns the resulting bindings.
func (s *Server) applyContact(ctx context.Context, current []Binding, b Binding) ([]Binding, error) {
	index := slices.IndexFunc(current, func(existing Binding) bool { return existing.Contact == b.Contact })
	switch {
	case b.Expires.IsZero() && index < 0:
		return current, nil
	case b.Expires.IsZero():
		if err := s.unregister(ctx, current[index:index+1], UnregisteredByDevice); err != nil {
			return nil, err
		}
		return slices.Delete(current, index, index+1), nil
	case index >= 0:
		b.Since = current[index].Since
		current[index] = b
		s.metrics.bindings.WithLabelValues("refreshed").Inc()
		return current, s.bindings.Put(ctx, b)
	}
	if err := s.bindings.Put(ctx, b); err != nil {
		return nil, err
	}
	s.metrics.bindings.WithLabelValues("registered").Inc()
	for _, d := range s.registrationListeners {
		d.DeviceRegistered(b)
	}
	// Replace the same device's binding at its old contact, or the oldest binding above the limit.
	index = slices.IndexFunc(current,
		func(existing Binding) bool { return b.Instance != "" && existing.Instance == b.Instance })
	if index < 0 && len(current) >= s.config.Limits.MaxContacts {
		index = 0
	}
	if index >= 0 {
		if err := s.unregister(ctx, current[index:index+1], UnregisteredReplaced); err != nil {
			return nil, err
		}
		current = slices.Delete(current, index, index+1)
	}
	return append(current, b), nil
}

func (s *Server) unregister(ctx context.Context, gone []Binding, reason UnregisterReason) error {
	for _, b := range gone {
		removed, err := s.bindings.Remove(ctx, b)
		if err != nil {
			return err
		}
		if removed {
			s.reportUnregistered(b, reason)
		}
	}
	return nil
}

func (s *Server) reportUnregistered(b Binding, reason UnregisterReason) {
	s.metrics.bindings.WithLabelValues(string(reason)).Inc()
	for _, d := range s.registrationListeners {
		d.DeviceUnregistered(b, reason)
	}
}

// sweepInterval is the interval at which expired registrations are detected.
const sweepInterval = time.Second

// sweepExpired reports phones whose registration has expired until ctx ends.
func (s *Server) sweepExpired(ctx context.Context) {
	failing := false
	for now := range retry.Ticks(ctx, sweepInterval) {
		s.panics.Do(placeRequest, func() {
			expired, err := s.bindings.Expire(ctx, now)
			if err != nil && !failing && ctx.Err() == nil {
				s.log.Warn("listing registrations failed", "error", err)
			}
			failing = err != nil
			for _, b := range expired {
				s.reportUnregistered(b, UnregisteredExpired)
			}
		})
	}
}
