package sip

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/netip"
	"strconv"
	"time"

	sipmsg "github.com/emiago/sipgo/sip"
)

// registrar admits phones: it authenticates their requests and handles REGISTER. It needs no lock.
type registrar struct {
	transports    *transports
	registrations *Registrations
	users         Authenticator
	nonces        *nonces
	config        Config
	metrics       *metrics
	log           *slog.Logger
}

func newRegistrar(t *transports, registrations *Registrations, users Authenticator) *registrar {
	var key [32]byte
	rand.Read(key[:]) // never fails
	return &registrar{transports: t, registrations: registrations, users: users,
		nonces: newNonces(key, t.config.NonceLifetime), config: t.config, metrics: t.metrics, log: t.log}
}

// handleRegister handles a REGISTER (RFC 3261, section 10.3).
func (g *registrar) handleRegister(ctx context.Context, r *sipmsg.Request, tx *sipmsg.ServerTx) {
	source, err := netip.ParseAddrPort(r.Source())
	if err != nil {
		g.metrics.malformed.Inc()
		tx.Terminate()
		return
	}

	address := r.To().Address
	user, ok := g.authenticateRequest(ctx, r, tx,
		expectedCredentials{source: source, domain: address.Host, username: address.User, challenge: wwwAuthenticate})
	if !ok {
		return
	}

	changes, refusal := g.registrations.readContacts(r, user, source)
	if refusal.code != 0 {
		headers := []sipmsg.Header{}
		if refusal.code == 423 {
			headers = append(headers, sipmsg.NewHeader("Min-Expires", strconv.Itoa(int(g.config.MinExpires.Seconds()))))
		}
		g.transports.reply(tx, r, refusal, headers...)
		return
	}

	aor := AOR{AccountID: user.AccountID, Extension: user.Extension}
	bindings, refusal, err := g.registrations.apply(ctx, aor, changes)
	if err != nil {
		g.log.Warn("storing a registration failed", "error", err)
		g.transports.reply(tx, r, status{503, "Service Unavailable"}, sipmsg.NewHeader("Retry-After", "5"))
		return
	}

	if refusal.code != 0 {
		g.transports.reply(tx, r, refusal)
		return
	}

	headers := make([]sipmsg.Header, 0, len(bindings))
	for _, b := range bindings {
		expires := strconv.Itoa(max(int(time.Until(b.Expires).Round(time.Second).Seconds()), 1))
		headers = append(headers, sipmsg.NewHeader("Contact", "<"+b.Contact+">;expires="+expires))
	}

	g.transports.reply(tx, r, status{200, "OK"}, headers...)
}
