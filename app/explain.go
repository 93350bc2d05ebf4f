package app

import (
	"trunkline/explain"
	"trunkline/fanout"
	"trunkline/settings"
)

// peers sends requests about events to the other nodes with connections, and receives theirs.
func (b *base) peers() fanout.RedisPeers {
	return fanout.RedisPeers{RedisPresence: &fanout.RedisPresence{Client: b.redis, Prefix: b.settings.Redis.KeyPrefix}}
}

// newExplain returns the explanations of events. subscribers is nil without the role fanout.
func newExplain(b *base, subscribers *fanout.Fanout) *explain.Service {
	// With the role api alone there is a Fanout too, which has the state and no connections.
	if !b.hasRole(settings.RoleFanout) {
		subscribers = nil
	}
	return &explain.Service{
		Log: b.cluster, Webhooks: b.secrets.webhooks, Accounts: b.identity.Directory,
		Connections: fanout.Explainer{Local: subscribers, Peers: b.peers(), Log: b.log},
	}
}
