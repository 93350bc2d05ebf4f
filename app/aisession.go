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
	"trunkline/recording"
	"trunkline/settings"
	"trunkline/telephony/localcall"
	"trunkline/telephony/number"
	"trunkline/telephony/sip"
)

// aiSessions are the AI sessions and what has providers listen to calls.
type aiSessions struct {
	sessions  *aisession.Service    // nil without the role aisession
	listeners *listening.Listeners  // nil without the roles api, origination and aisession
	onSIP     localcall.Destination // nil without SIP
	recorders localcall.Recorders   // what hears the calls that this process connects
}

// buildAISessions builds the AI sessions and their ingresses. phones is nil without SIP, recorder without a role
// that handles calls.
func buildAISessions(b *base, phones *phones, admission *origination.Admission, recorder *recording.Recorder,
	platform aisession.Platform) (ai aiSessions, err error) {
	if recorder != nil {
		ai.recorders = append(ai.recorders, recorder)
	}

	if !b.hasRole(settings.RoleAISession) {
		if b.handlesCalls() { // serves calls of other nodes
			ai.listeners = newListeners(b, nil, platform)
		}
		return ai, nil
	}

	s := b.settings.AISession.Sessions
	// The last quarter is for the parts that stop after the sessions.
	s.DrainLimit = min(s.DrainLimit, b.settings.DrainTimeout*3/4)

	plan, err := number.NewPlan(b.settings.Numbers)
	if err != nil {
		return ai, fmt.Errorf("numbers: %w", err)
	}

	ai.sessions, err = aisession.New(s, aisession.Deps{
		Providers: b.sealedStores.providers,
		Publisher: ownEventPublisher{b.newProducer("AI sessions' producer", kafka.ProducerConfig{}), "aisession",
			b.tracer},
		Announcements: aisession.NewRedisAnnouncements(b.redis, b.settings.Redis.KeyPrefix),
		Leases:        aisession.NewRedisSessionLeases(b.redis, b.settings.Redis.KeyPrefix),
		Platform:      platform,
		CallNodes: &redisclient.HolderRequests[aisession.CallUpdate]{Client: b.redis,
			Channel: b.settings.Redis.KeyPrefix + "aisession:updates", Log: b.log},
		FormatE164: plan.E164,
		Metrics:    b.registry, Log: b.log, Tracer: b.tracer,
	})
	if err != nil {
		return ai, fmt.Errorf("AI sessions: %w", err)
	}

	ai.listeners = newListeners(b, ai.sessions, platform)
	ai.recorders = append(ai.recorders, ai.listeners)
	b.lifecycle.addRun("listeners", ai.listeners.Run)
	if phones != nil {
		calls := sipcall.New(
			sipcall.Deps{Sessions: ai.sessions, Providers: b.sealedStores.providers, Ports: phones.ports,
				MayCall: b.canUseProvider, Admission: phoneAdmission{admission},
				Encryption: sip.Encryption(b.settings.SIP.Server.SRTP), Recorder: ai.recorders, Log: b.log})
		phones.server.Handle(localcall.Prefix, calls)
		ai.onSIP = calls
	}

	socket := b.settings.AISession.AudioSocket
	if socket.Listen != "" {
		server, err := audiosocket.New(socket, ai.sessions, b.log)
		if err != nil {
			return ai, listenError("aisession.audiosocket_listen", err)
		}

		b.lifecycle.addClose("AudioSocket listener", func(context.Context) error { return server.Close() })
		// Registered before the sessions, so that it stops after them: it waits for its
		// calls.
		b.lifecycle.addRun("AudioSocket", server.Run)
		b.log.Info("AudioSocket listening: accepts announced calls and those of audiosocket_secrets only, without TLS",
			"address", server.Addr().String())
	}

	b.lifecycle.addRun("AI sessions", ai.sessions.Run)
	return ai, nil
}

// newListeners returns what has providers listen to calls: of this process, unless sessions is nil, and of other nodes.
func newListeners(b *base, sessions *aisession.Service, platform aisession.Platform) *listening.Listeners {
	return listening.New(listening.Deps{
		Sessions: sessions, Providers: b.sealedStores.providers, MayUse: b.canUseProvider, Platform: platform,
		Audit: b.audit,
		Nodes: &redisclient.HolderRequests[listening.StartRequest]{Client: b.redis,
			Channel: b.settings.Redis.KeyPrefix + "aisession:listeners", Log: b.log},
	})
}

// buildListeningRules builds what has providers listen to the calls of their queues. Every node with actions on
// calls runs it; an action is sent once.
func buildListeningRules(b *base, roster listening.Roster, platform aisession.Platform) {
	rules := listening.NewQueueRules(listening.QueueRulesDeps{Rules: b.sealedStores.providers, Roster: roster,
		Platform: platform, Log: b.log})
	b.lifecycle.addRun("listening rules", rules.Run)
}

// canUseProvider reports whether a caller's account can use the provider of an account. accountID
// is "" for callers from a trusted network, which can use the providers of every account.
func (b *base) canUseProvider(accountID, providerAccountID string) bool {
	tree := b.identity.Directory.Tree()
	if accountID == "" {
		_, ok := tree.Account(providerAccountID)
		return ok
	}
	return tree.Contains(accountID, providerAccountID)
}
