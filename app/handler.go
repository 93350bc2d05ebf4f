package app

import (
	"context"
	"net/http"

	"trunkline/aisession/pcmsocket"
	"trunkline/api"
	"trunkline/docs"
	"trunkline/docs/site"
	"trunkline/explain"
	"trunkline/fanout"
	"trunkline/ingest/deadletter"
	"trunkline/ingest/feed"
	"trunkline/internal/kafka"
	"trunkline/settings"
	"trunkline/web"
)

// newHandler returns the handler of the public listener: the API with the routes of the node's roles, and the
// board.
func newHandler(b *base, r *roleParts) (http.Handler, error) {
	deps := api.Deps{Auth: b.identity.Tokens, Accounts: b.identity.Directory, Ingest: r.ingest, Tracer: b.tracer}
	// A nil pointer in an interface would not be nil, and its routes would exist.
	if r.calls != nil {
		deps.Calls = r.calls
	}
	if r.control != nil {
		deps.Control = r.control
	}
	if r.recordings.recorder != nil { // it asks the node that connects the call
		deps.LiveRecorder = r.recordings.recorder
	}

	if b.hasRole(settings.RoleFanout) {
		deps.Channel, deps.ChannelLogins, deps.ChannelTokens = r.subscribers, b.identity.Credentials, b.identity.Tokens
	}

	sessions := r.ai.sessions
	if sessions != nil {
		deps.AITester, deps.AIAnnouncer, deps.AICalls = sessions, sessions, sessions
		deps.AIMedia, deps.AIProviderOpener = pcmsocket.New(sessions, b.log), b.sealedStores.providers
	}

	if r.ai.listeners != nil {
		deps.CallListeners = r.ai.listeners
	}

	if b.hasRole(settings.RoleAPI) {
		deps.Portal, deps.Sessions = b.identity.Credentials, b.identity.Tokens
		deps.Directory, deps.OTPs, deps.Audit = b.identity.Directory, b.identity.Credentials, b.audit
		deps.Encryption = b.sealedStores.encryption
		deps.Recordings = r.recordings.service
		deps.RecordingPolicies = r.recordings.policies
		deps.Roster = r.subscribers
		deps.CallReports, deps.Figures, deps.QueueConfigs = r.index, r.figures, r.queueConfigs
		deps.AlertConfigs = r.queueConfigs
		deps.Alerts = r.figures
		deps.Abandoned = r.figures
		deps.Feeds = r.feedStates
		deps.DeadLetters = newDeadLetters(b)
		deps.AIProviders, deps.AIProviderOpener = b.sealedStores.providers, b.sealedStores.providers
		deps.Webhooks, deps.Explain = b.sealedStores.webhooks, newExplain(b, r.subscribers)
	}

	board, err := buildBoard()
	if err != nil {
		return nil, err
	}

	return api.New(api.Config{Settings: b.settings.API, Board: board}, deps, b.registry, b.log)
}

// buildBoard builds the live board and the pages under /docs.
func buildBoard() (*web.Handler, error) {
	board, err := web.New()
	if err != nil {
		return nil, err
	}

	pages, err := site.New(docs.Pages, site.Served())
	if err != nil {
		return nil, err
	}

	pages.Each(board.Add)
	return board, nil
}

func newDeadLetters(b *base) *deadletter.AccountLetters {
	directory := FeedDirectory{b.identity.Directory}
	letters := deadletter.New(deadletter.Deps{
		LogReader: b.cluster, Producer: b.newProducer("dead letters' producer", kafka.ProducerConfig{}),
		Feeds:         b.settings.Feeds,
		WithDirectory: func(_ context.Context, work func(feed.Directory) error) error { return work(directory) },
	})
	return deadletter.NewAccountLetters(letters, b.identity.Directory.Tree, directory)
}

// newExplain returns the explanations of events. subscribers is nil without the role fanout.
func newExplain(b *base, subscribers *fanout.Fanout) *explain.Service {
	// With the role api alone there is a Fanout too, which has the state and no connections.
	if !b.hasRole(settings.RoleFanout) {
		subscribers = nil
	}
	return &explain.Service{
		LogReader: b.cluster, Webhooks: b.sealedStores.webhooks, Accounts: b.identity.Directory,
		Connections: fanout.Explainer{Local: subscribers, Peers: b.peers(), Log: b.log},
	}
}
