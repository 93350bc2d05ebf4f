package app

import (
	"context"
	"fmt"

	"trunkline/aisession"
	"trunkline/aisession/audiosocket"
	"trunkline/aisession/pcmsocket"
	"trunkline/aisession/sipcall"
	"trunkline/api"
	"trunkline/config/settings"
	"trunkline/internal/kafka"
	"trunkline/telephony/localcall"
	"trunkline/telephony/number"
	"trunkline/telephony/sip"
)

// buildSessions builds the AI sessions and their ingresses.
func (a *App) buildSessions(phones *phones, deps *api.Deps) (onSIP localcall.Destination, err error) {
	if !a.has(settings.RoleAISession) {
		return nil, nil
	}
	s := a.settings.AISession.Sessions
	s.DrainLimit = min(s.DrainLimit, a.settings.DrainTimeout*3/4)
	plan, err := number.NewPlan(a.settings.Numbers)
	if err != nil {
		return nil, fmt.Errorf("numbers: %w", err)
	}
	sessions, err := aisession.New(s, aisession.Deps{
		Providers:     a.providers,
		Publisher:     ownEvents{a.newProducer("AI sessions' producer", kafka.ProducerConfig{}), "aisession", a.tracer},
		Announcements: aisession.NewRedisAnnouncements(a.redis, a.settings.Redis.KeyPrefix),
		Leases:        aisession.NewRedisSessionLeases(a.redis, a.settings.Redis.KeyPrefix),
		E164:          plan.E164,
		Metrics:       a.registry, Log: a.log, Tracer: a.tracer,
	})
	if err != nil {
		return nil, fmt.Errorf("AI sessions: %w", err)
	}
	if phones != nil {
		calls := sipcall.New(sipcall.Deps{Sessions: sessions, Providers: a.providers, Ports: phones.ports, MayCall: a.sees,
			Admission: phoneAdmission{a.admission}, Encryption: sip.Encryption(a.settings.SIP.Server.SRTP), Log: a.log})
		phones.server.Handle(sipcall.Prefix, calls)
		onSIP = calls
	}
	if socket := a.settings.AISession.AudioSocket; socket.Listen != "" {
		server, err := audiosocket.New(socket, sessions, a.log)
		if err != nil {
			return nil, taken("aisession.audiosocket_listen", err)
		}
		a.life.closes("AudioSocket listener", func(context.Context) error { return server.Close() })
		// Registered before the sessions, so that it ends after them: it waits for its
		// calls.
		a.life.runs("AudioSocket", server.Run)
		a.log.Info("AudioSocket listening: accepts announced calls and those of audiosocket_secrets only, without TLS", "address", server.Addr().String())
	}
	a.life.runs("AI sessions", sessions.Run)
	deps.AITester, deps.AIAnnouncer, deps.AIMedia = sessions, sessions, pcmsocket.New(sessions, a.log)
	return onSIP, nil
}

// sees reports whether a caller's account can use a provider's account; "" is a trusted
// network, which can use every account.
func (a *App) sees(accountID, providerAccountID string) bool {
	tree := a.identity.Tree()
	if accountID == "" {
		_, there := tree.Account(providerAccountID)
		return there
	}
	return tree.Contains(accountID, providerAccountID)
}
