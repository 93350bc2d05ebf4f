package app

import (
	"trunkline/fanout"
	"trunkline/internal/kafka"
	"trunkline/settings"
	"trunkline/stats/figures"
)

func (a *App) buildFanout(figureStore *figures.Store) (*fanout.Fanout, error) {
	if !a.hasRole(settings.RoleFanout) && !a.hasRole(settings.RoleAPI) && !a.hasRole(settings.RoleOrigination) {
		return nil, nil
	}

	var presence fanout.Presence = fanout.NoPresence{}
	var peers fanout.Peers
	if a.hasRole(settings.RoleFanout) {
		presence = &fanout.RedisPresence{Client: a.redis, Prefix: a.settings.Redis.KeyPrefix}
		peers = a.peers()
	}

	f, err := fanout.New(fanout.Config{Settings: a.settings.Fanout, NodeID: a.node}, fanout.Deps{
		Log: kafka.NewLog(a.cluster), Auth: a.identity.Tokens, Directory: a.identity.Directory,
		Presence: presence,
		Limits:   fanout.NewRedisLimits(a.redis, a.settings.Redis.KeyPrefix), Figures: queueFigures{figureStore},
		Metrics: a.registry, Logger: a.log, Tracer: a.tracer, Peers: peers,
	})
	if err != nil {
		return nil, err
	}

	a.lifecycle.addRun("fanout", f.Run)
	return f, nil
}
