package sip

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	sipmsg "github.com/emiago/sipgo/sip"

	"trunkline/internal/panics"
	"trunkline/internal/retry"
)

// Registrations are those of phones. They are the same on all nodes, and need no lock: the
// bindings keep them.
type Registrations struct {
	bindings    *RedisBindings
	minExpires  time.Duration
	maxContacts int // of a user
	metrics     *metrics
	panics      *panics.Recoverer
	log         *slog.Logger

	listeners []RegistrationListener // set before Server.Run
}

// RegistrationListener is notified of new and ended registrations, but not of refreshes. Its methods must not
// block.
type RegistrationListener interface {
	// DeviceRegistered tells of a phone that was not registered before.
	DeviceRegistered(b Binding)
	// DeviceUnregistered tells of a registration that has ended.
	DeviceUnregistered(b Binding, reason UnregisterReason)
}

// UnregisterReason is the reason a registration ended.
type UnregisterReason string

// The reasons.
const (
	UnregisteredByDevice UnregisterReason = "unregistered"
	UnregisteredExpired  UnregisterReason = "expired"
	// by a new contact of the same device, or by one above MaxContacts
	UnregisteredReplaced UnregisterReason = "replaced"
)

// AddListener registers l for new and ended registrations. It must be called before Server.Run.
func (g *Registrations) AddListener(l RegistrationListener) { g.listeners = append(g.listeners, l) }

// List returns a user's bindings.
func (g *Registrations) List(ctx context.Context, accountID, extension string) ([]Binding, error) {
	return g.bindings.List(ctx, AOR{AccountID: accountID, Extension: extension})
}

// Exist reports whether a user has a registered phone.
func (g *Registrations) Exist(ctx context.Context, accountID, extension string) (bool, error) {
	found, err := g.List(ctx, accountID, extension)
	return len(found) > 0, err
}

// registerChanges is the content of a REGISTER: contacts to register or, with a zero Expires, to remove; all
// of them for "*".
type registerChanges struct {
	contacts  []Binding
	removeAll bool
	callID    string // of the REGISTER
	sequence  uint32 // CSeq number of the REGISTER
}

const maxContactBytes = 512

// readContacts returns what a REGISTER changes, or the status that refuses it; its code is 0 for none.
func (g *Registrations) readContacts(r *sipmsg.Request, user User,
	source netip.AddrPort) (requested registerChanges, refusal status) {
	now := time.Now()
	requested = registerChanges{callID: r.CallID().Value(), sequence: r.CSeq().SeqNo}
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

		if lifetime > 0 && lifetime < g.minExpires {
			return requested, status{423, "Interval Too Brief"}
		}

		uri := contact.Address.String()
		scheme := contact.Address.Scheme
		if scheme != "sip" && (scheme != "sips" || r.Transport() != transportTLS) || contact.Address.Host == "" ||
			len(uri) > maxContactBytes || len(requested.contacts) >= g.maxContacts {
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

// truncate returns at most the first 128 bytes of a text that the phone chooses.
func truncate(text string) string { return text[:min(len(text), 128)] }

// apply applies the changes of a REGISTER and returns the resulting bindings, or the status that refuses it.
func (g *Registrations) apply(ctx context.Context, aor AOR,
	requested registerChanges) (bindings []Binding, refusal status, err error) {
	current, err := g.bindings.List(ctx, aor)
	if err != nil {
		return nil, status{}, err
	}

	// A repeated or reordered REGISTER of the same phone (RFC 3261, section 10.3, step 7).
	for _, b := range current {
		if b.CallID == requested.callID && b.CSeq >= requested.sequence &&
			(requested.removeAll || len(requested.contacts) > 0) {
			return nil, status{500, "Request Out Of Order"}, nil
		}
	}

	if requested.removeAll {
		return nil, status{}, g.unregister(ctx, current, UnregisteredByDevice)
	}

	for _, b := range requested.contacts {
		current, err = g.applyContact(ctx, current, b)
		if err != nil {
			return nil, status{}, err
		}
	}

	return current, status{}, nil
}

// applyContact registers or removes one contact and returns the resulting bindings.
func (g *Registrations) applyContact(ctx context.Context, current []Binding, b Binding) ([]Binding, error) {
	index := slices.IndexFunc(current, func(existing Binding) bool { return existing.Contact == b.Contact })
	switch {
	case b.Expires.IsZero() && index < 0:
		return current, nil
	case b.Expires.IsZero():
		if err := g.unregister(ctx, current[index:index+1], UnregisteredByDevice); err != nil {
			return nil, err
		}
		return slices.Delete(current, index, index+1), nil
	case index >= 0:
		b.Since = current[index].Since
		current[index] = b
		g.metrics.bindings.WithLabelValues("refreshed").Inc()
		return current, g.bindings.Put(ctx, b)
	}

	if err := g.bindings.Put(ctx, b); err != nil {
		return nil, err
	}

	g.metrics.bindings.WithLabelValues("registered").Inc()
	for _, d := range g.listeners {
		d.DeviceRegistered(b)
	}

	// Replace the same device's binding at its old contact, or the oldest binding above the limit.
	index = slices.IndexFunc(current,
		func(existing Binding) bool { return b.Instance != "" && existing.Instance == b.Instance })
	if index < 0 && len(current) >= g.maxContacts {
		index = 0
	}

	if index >= 0 {
		if err := g.unregister(ctx, current[index:index+1], UnregisteredReplaced); err != nil {
			return nil, err
		}
		current = slices.Delete(current, index, index+1)
	}

	return append(current, b), nil
}

// unregister removes bindings, and reports those that were still there.
func (g *Registrations) unregister(ctx context.Context, gone []Binding, reason UnregisterReason) error {
	for _, b := range gone {
		removed, err := g.bindings.Remove(ctx, b)
		if err != nil {
			return err
		}

		if removed {
			g.reportUnregistered(b, reason)
		}
	}

	return nil
}

// reportUnregistered counts the end of a registration and tells the listeners.
func (g *Registrations) reportUnregistered(b Binding, reason UnregisterReason) {
	g.metrics.bindings.WithLabelValues(string(reason)).Inc()
	for _, d := range g.listeners {
		d.DeviceUnregistered(b, reason)
	}
}

// sweepInterval is the interval at which expired registrations are detected.
const sweepInterval = time.Second

// sweepExpired reports phones whose registration has expired until ctx ends.
func (g *Registrations) sweepExpired(ctx context.Context) {
	failing := false
	for now := range retry.Ticks(ctx, sweepInterval) {
		g.panics.Do(placeRequest, func() {
			expired, err := g.bindings.Expire(ctx, now)
			if err != nil && !failing && ctx.Err() == nil {
				g.log.Warn("listing registrations failed", "error", err)
			}

			failing = err != nil
			for _, b := range expired {
				g.reportUnregistered(b, UnregisteredExpired)
			}
		})
	}
}
