package app

import (
	"context"
	"fmt"

	"trunkline/aisession"
	"trunkline/aisession/audiosocket"
	"trunkline/aisession/listening"
	"trunkline/aisession/sipcall"
	"trunkline/internal/kafka"
	"trunkline/internal/redisclient"
	"trunkline/origination"
	"trunkline/settings"
	"trunkline/telephony/localcall"
	"trunkline/telephony/number"
	"trunkline/telephony/sip"
)

// buildAISessions builds the AI sessions and their ingresses. onSIP is nil without SIP.
func (a *App) buildAISessions(phones *phones, admission *origination.Admission,
	platform aisession.Platform) (sessions *aisession.Service, onSIP localcall.Destination, err error) {
	if !a.hasRole(settings.RoleAISession) {
		if a.handlesCalls() { // serves calls of other nodes
			a.listeners = a.newListeners(nil, platform)
		}
		return nil, nil, nil
	}

	s := a.settings.AISession.Sessions
	// The last quarter is for the parts that stop after the sessions.
	s.DrainLimit = min(s.DrainLimit, a.settings.DrainTimeout*3/4)

	plan, err := number.NewPlan(a.settings.Numbers)
	if err != nil {
		return nil, nil, fmt.Errorf("numbers: %w", err)
	}

	sessions, err = aisession.New(s, aisession.Deps{
		Providers: a.providers,
		Publisher: ownEventPublisher{a.newProducer("AI sessions' producer", kafka.ProducerConfig{}), "aisession",
			a.tracer},
		Announcements: aisession.NewRedisAnnouncements(a.redis, a.settings.Redis.KeyPrefix),
		Leases:        aisession.NewRedisSessionLeases(a.redis, a.settings.Redis.KeyPrefix),
		Platform:      platform,
		CallNodes: &redisclient.HolderRequests[aisession.CallUpdate]{Client: a.redis,
			Channel: a.settings.Redis.KeyPrefix + "aisession:updates", Log: a.log},
		FormatE164: plan.E164,
		Metrics:    a.registry, Log: a.log, Tracer: a.tracer,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("AI sessions: %w", err)
	}

	a.listeners = a.newListeners(sessions, platform)
	a.lifecycle.addRun("listeners", a.listeners.Run)
	if phones != nil {
		calls := sipcall.New(
			sipcall.Deps{Sessions: sessions, Providers: a.providers, Ports: phones.ports, MayCall: a.canUseProvider,
				Admission: phoneAdmission{admission}, Encryption: sip.Encryption(a.settings.SIP.Server.SRTP),
				Recorder: a.recorders(), Log: a.log})
		phones.server.Handle(localcall.Prefix, calls)
		onSIP = calls
	}

	socket := a.settings.AISession.AudioSocket
	if socket.Listen != "" {
		server, err := audiosocket.New(socket, sessions, a.log)
		if err != nil {
			return nil, nil, listenError("aisession.audiosocket_listen", err)
		}

		a.lifecycle.addClose("AudioSocket listener", func(context.Context) error { return server.Close() })
		// Registered before the sessions, so that it stops after them: it waits for its
		// calls.
		a.lifecycle.addRun("AudioSocket", server.Run)
		a.log.Info("AudioSocket listening: accepts announced calls and those of audiosocket_secrets only, without TLS",
			"address", server.Addr().String())
	}

	a.lifecycle.addRun("AI sessions", sessions.Run)
	return sessions, onSIP, nil
}

// newListeners returns what has providers listen to calls: of this process, unless sessions is nil, and of other nodes.
func (a *App) newListeners(sessions *aisession.Service, platform aisession.Platform) *listening.Listeners {
	return listening.New(listening.Deps{
		Sessions: sessions, Providers: a.providers, MayUse: a.canUseProvider, Platform: platform, Audit: a.audit,
		Nodes: &redisclient.HolderRequests[listening.StartRequest]{Client: a.redis,
			Channel: a.settings.Redis.KeyPrefix + "aisession:listeners", Log: a.log},
	})
}

// buildListeningRules builds what has providers listen to the calls of their queues. Every node with actions on
// calls runs it; an action is sent once.
func (a *App) buildListeningRules(roster listening.Roster, platform aisession.Platform) {
	rules := listening.NewQueueRules(listening.QueueRulesDeps{Rules: a.providers, Roster: roster,
		Platform: platform, Log: a.log})
	a.lifecycle.addRun("listening rules", rules.Run)
}

// recorders returns what hears the calls that this process connects.
func (a *App) recorders() (all localcall.Recorders) {
	if a.recorder != nil {
		all = append(all, a.recorder)
	}
	if a.listeners != nil && a.hasRole(settings.RoleAISession) {
		all = append(all, a.listeners)
	}
	return all
}

// canUseProvider reports whether a caller's account can use the provider of an account. accountID
// is "" for callers from a trusted network, which can use the providers of every account.
func (a *App) canUseProvider(accountID, providerAccountID string) bool {
	tree := a.identity.Directory.Tree()
	if accountID == "" {
		_, ok := tree.Account(providerAccountID)
		return ok
	}
	return tree.Contains(accountID, providerAccountID)
}
