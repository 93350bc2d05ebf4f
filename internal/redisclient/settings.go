package redisclient

import (
	"trunkline/internal/setting"
	"trunkline/internal/tlsclient"
)

// Settings holds the settings of Redis. The one of Address, ClusterAddresses and
// Sentinel.Addresses that is set selects the kind; none: the embedded one.
type Settings struct {
	Address          string             `yaml:"address" doc:"host:port; empty, with no other addresses: the embedded Redis"`
	ClusterAddresses []string           `yaml:"cluster_addresses" doc:"host:port of one or more nodes of a Redis Cluster, or of its configuration endpoint; in place of address"`
	Username         string             `yaml:"username" doc:"user name; empty: the default user"`
	Password         setting.Secret     `yaml:"password" doc:"password"`
	DB               int                `yaml:"db" doc:"database number; a Redis Cluster has only 0"`
	KeyPrefix        string             `yaml:"key_prefix" doc:"prefix of every key"`
	TLS              tlsclient.Settings `yaml:"tls"`
	Sentinel         Sentinel           `yaml:"sentinel"`
}

// Sentinel has the addresses of the Sentinels that return the address of the master.
// redis.tls applies to them too.
type Sentinel struct {
	Addresses []string       `yaml:"addresses" doc:"host:port of the Sentinels; in place of redis.address"`
	Master    string         `yaml:"master" doc:"name of the master in the Sentinels' configuration"`
	Username  string         `yaml:"username" doc:"user name at the Sentinels; empty: the default user"`
	Password  setting.Secret `yaml:"password" doc:"password at the Sentinels; empty: they want none"`
}

// DefaultSettings returns the default settings.
func DefaultSettings() Settings { return Settings{KeyPrefix: "trunkline:"} }

// Embedded reports whether no address is set.
func (s Settings) Embedded() bool {
	return s.Address == "" && len(s.ClusterAddresses) == 0 && len(s.Sentinel.Addresses) == 0
}

// Validate implements setting.Group.
func (s Settings) Validate(c *setting.Check) {
	if s.Address != "" {
		c.Dialable("address", s.Address)
	}

	for _, address := range s.ClusterAddresses {
		c.Dialable("cluster_addresses", address)
	}

	c.Must(s.Address == "" || len(s.ClusterAddresses) == 0, "cluster_addresses", "%s is set too: unset one",
		c.Key("address"))
	c.Must(len(s.Sentinel.Addresses) == 0 || s.Address == "" && len(s.ClusterAddresses) == 0, "sentinel.addresses",
		"%s or %s is set too: unset one", c.Key("address"), c.Key("cluster_addresses"))
	c.NotNegative("db", s.DB)
	c.Must(s.DB == 0 || len(s.ClusterAddresses) == 0, "db", "a Redis Cluster has only database 0")
	s.TLS.Validate(c.Group("tls"))
	s.Sentinel.Validate(c.Group("sentinel"))
}

// Validate implements setting.Group.
func (s Sentinel) Validate(c *setting.Check) {
	for _, address := range s.Addresses {
		c.Dialable("addresses", address)
	}
	hasAddresses := len(s.Addresses) > 0
	c.Must(!hasAddresses || s.Master != "", "master", "%s needs it", c.Key("addresses"))
	c.Must(hasAddresses || s.Master == "" && s.Username == "" && s.Password == "", "addresses",
		"%s, %s and %s need it", c.Key("master"), c.Key("username"), c.Key("password"))
}
