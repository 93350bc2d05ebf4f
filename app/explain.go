package app

import (
	"trunkline/api"
	"trunkline/config/settings"
	"trunkline/explain"
	"trunkline/fanout"
)

// peers exchanges questions between the nodes that have connections.
func (a *App) peers() fanout.RedisPeers {
	return fanout.RedisPeers{RedisPresence: &fanout.RedisPresence{Client: a.redis, Prefix: a.settings.Redis.KeyPrefix}}
}

// buildExplain builds the explanations of events.
func (a *App) buildExplain(deps *api.Deps) {
	if !a.has(settings.RoleAPI) {
		return
	}
	deps.Explain = &explain.Service{
		Log: a.cluster, Webhooks: a.webhooks, Accounts: a.identity,
		Connections: fanout.Explainer{Local: a.fanout, Peers: a.peers(), Log: a.log},
	}
}
