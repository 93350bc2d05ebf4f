package app

import (
	"trunkline/explain"
	"trunkline/fanout"
	"trunkline/settings"
)

// peers sends requests about events to the other nodes with connections, and receives theirs.
func (a *App) peers() fanout.RedisPeers {
	return fanout.RedisPeers{RedisPresence: &fanout.RedisPresence{Client: a.redis, Prefix: a.settings.Redis.KeyPrefix}}
}

// newExplain returns the explanations of events. subscribers is nil without the role fanout.
func (a *App) newExplain(subscribers *fanout.Fanout) *explain.Service {
	// With the role api alone there is a Fanout too, which has the state and no connections.
	if !a.hasRole(settings.RoleFanout) {
		subscribers = nil
	}
	return &explain.Service{
		Log: a.cluster, Webhooks: a.webhooks, Accounts: a.identity.Directory,
		Connections: fanout.Explainer{Local: subscribers, Peers: a.peers(), Log: a.log},
	}
}
