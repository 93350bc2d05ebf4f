package app

import (
	"trunkline/api"
	"trunkline/config/settings"
	"trunkline/explain"
	"trunkline/fanout"
)

// peers sends requests about events to the other nodes with connections, and receives theirs.
func (a *App) peers() fanout.RedisPeers {
	return fanout.RedisPeers{RedisPresence: &fanout.RedisPresence{Client: a.redis, Prefix: a.settings.Redis.KeyPrefix}}
}

// buildExplain builds the explanations of events.
func (a *App) buildExplain(deps *api.Deps) {
	if !a.hasRole(settings.RoleAPI) {
		return
	}
	deps.Explain = &explain.Service{
		Log: a.cluster, Webhooks: a.webhooks, Accounts: a.identity,
		Connections: fanout.Explainer{Local: a.fanout, Peers: a.peers(), Log: a.log},
	}
}
