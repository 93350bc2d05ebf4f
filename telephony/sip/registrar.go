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
	user, ok := s.authenticate(ctx, r, tx, proof{source, address.Host, address.User, userDigest})
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
	left, refusal, err := s.register(ctx, aor, changes)
	if err != nil {
		s.log.Warn("storing a registration failed", "error", err)
		s.reply(tx, r, status{503, "Service Unavailable"}, sipmsg.NewHeader("Retry-After", "5"))
		return
	}
	if refusal.code != 0 {
		s.reply(tx, r, refusal)
		return
	}
	headers := make([]sipmsg.Header, 0, len(left))
	for _, b := range left {
		expires := strconv.Itoa(max(int(time.Until(b.Expires).Round(time.Second).Seconds()), 1))
		headers = append(headers, sipmsg.NewHeader("Contact", "<"+b.Contact+">;expires="+expires))
	}
	s.reply(tx, r, status{200, "OK"}, headers...)
}

// changes is the content of a REGISTER: contacts to register or, with a zero Expires, to remove; all
// of them for "*".
type changes struct {
	contacts  []Binding
	removeAll bool
	callID    string
	sequence  uint32
}

const maxContact = 512

func (s *Server) readContacts(r *sipmsg.Request, user User, source netip.AddrPort) (changes, status) {
	now := time.Now()
	asked := changes{callID: r.CallID().Value(), sequence: r.CSeq().SeqNo}
	common, hasCommon := seconds(headerValue(r, "Expires"))
	for _, h := range r.GetHeaders("Contact") {
		contact, ok := h.(*sipmsg.ContactHeader)
		if !ok {
			return asked, status{400, "Bad Contact"}
		}
		if contact.Address.Wildcard {
			asked.removeAll = true
			continue
		}
		life, ok := seconds(contact.Params.GetOr("expires", ""))
		switch {
		case !ok && hasCommon:
			life = common
		case !ok:
			life = maxExpires
		}
		if life > 0 && life < s.config.MinExpires {
			return asked, status{423, "Interval Too Brief"}
		}
		uri := contact.Address.String()
		scheme := contact.Address.Scheme
		if scheme != "sip" && (scheme != "sips" || r.Transport() != networkTLS) || contact.Address.Host == "" || len(uri) > maxContact || len(asked.contacts) >= s.config.Limits.MaxContacts {
			return asked, status{400, "Bad Contact"}
		}
		b := Binding{
			AOR: AOR{AccountID: user.AccountID, Extension: user.Extension}, Domain: user.Domain, UserID: user.UserID,
			Contact: uri, Instance: shortened(contact.Params.GetOr("+sip.instance", "")), Source: source, Transport: r.Transport(),
			UserAgent: shortened(printable(headerValue(r, "User-Agent"))), CallID: asked.callID, CSeq: asked.sequence, Since: now,
		}
		if life > 0 {
			b.Expires = now.Add(min(life, maxExpires))
		}
		asked.contacts = append(asked.contacts, b)
	}
	if asked.removeAll && (len(asked.contacts) > 0 || !hasCommon || common != 0) {
		return asked, status{400, "Bad Request"} // RFC 3261, section 10.3, step 6
	}
	return asked, status{}
}

func shortened(text string) string { return text[:min(len(text), 128)] }

// register applies the changes and returns the resulting bindings.
func (s *Server) register(ctx context.Context, aor AOR, asked changes) ([]Binding, status, error) {
	current, err := s.bindings.List(ctx, aor)
	if err != nil {
		return nil, status{}, err
	}
	for _, b := range current {
		if b.CallID == asked.callID && b.CSeq >= asked.sequence && (asked.removeAll || len(asked.contacts) > 0) {
			return nil, status{500, "Request Out Of Order"}, nil
		}
	}
	if asked.removeAll {
		return nil, status{}, s.unregister(ctx, current, UnregisteredByDevice)
	}
	for _, b := range asked.contacts {
		if current, err = s.bind(ctx, current, b); err != nil {
			return nil, status{}, err
		}
	}
	return current, status{}, nil
}

// bind registers or removes one contact and returns the resulting bindings.
func (s *Server) bind(ctx context.Context, current []Binding, b Binding) ([]Binding, error) {
	at := slices.IndexFunc(current, func(one Binding) bool { return one.Contact == b.Contact })
	switch {
	case b.Expires.IsZero() && at < 0:
		return current, nil
	case b.Expires.IsZero():
		if err := s.unregister(ctx, current[at:at+1], UnregisteredByDevice); err != nil {
			return nil, err
		}
		return slices.Delete(current, at, at+1), nil
	case at >= 0:
		b.Since = current[at].Since
		current[at] = b
		s.metrics.bindings.WithLabelValues("refreshed").Inc()
		return current, s.bindings.Put(ctx, b)
	}
	if err := s.bindings.Put(ctx, b); err != nil {
		return nil, err
	}
	s.metrics.bindings.WithLabelValues("registered").Inc()
	for _, d := range s.devices {
		d.DeviceRegistered(b)
	}
	// Replace the same device's binding at its old contact, or the oldest binding above the limit.
	at = slices.IndexFunc(current, func(one Binding) bool { return b.Instance != "" && one.Instance == b.Instance })
	if at < 0 && len(current) >= s.config.Limits.MaxContacts {
		at = 0
	}
	if at >= 0 {
		if err := s.unregister(ctx, current[at:at+1], UnregisteredReplaced); err != nil {
			return nil, err
		}
		current = slices.Delete(current, at, at+1)
	}
	return append(current, b), nil
}

func (s *Server) unregister(ctx context.Context, gone []Binding, reason Unregistered) error {
	for _, b := range gone {
		removed, err := s.bindings.Remove(ctx, b)
		if err != nil {
			return err
		}
		if removed {
			s.left(b, reason)
		}
	}
	return nil
}

func (s *Server) left(b Binding, reason Unregistered) {
	s.metrics.bindings.WithLabelValues(string(reason)).Inc()
	for _, d := range s.devices {
		d.DeviceUnregistered(b, reason)
	}
}

// sweepEvery is the interval at which expired registrations are detected.
const sweepEvery = time.Second

// sweep reports phones whose registration has expired until ctx ends.
func (s *Server) sweep(ctx context.Context) {
	failing := false
	for now := range retry.Ticks(ctx, sweepEvery) {
		s.panics.Do(placeRequest, func() {
			gone, err := s.bindings.Expire(ctx, now)
			if err != nil && !failing && ctx.Err() == nil {
				s.log.Warn("listing registrations failed", "error", err)
			}
			failing = err != nil
			for _, b := range gone {
				s.left(b, UnregisteredExpired)
			}
		})
	}
}
