package audiosocket

import "trunkline/internal/setting"

// Settings holds the settings of the AudioSocket listener.
type Settings struct {
	Listen         string `yaml:"audiosocket_listen" doc:"listener for Asterisk's AudioSocket, host:port, on a network that only the PBX can reach; empty: none"`
	MaxConnections int    `yaml:"audiosocket_connections" doc:"AudioSocket connections at the same time on this node; more are closed"`
}

// DefaultSettings returns the settings where nothing is set.
func DefaultSettings() Settings { return Settings{MaxConnections: 1000} }

// Validate implements setting.Group.
func (s Settings) Validate(c *setting.Check) {
	if s.Listen != "" {
		c.HostPort("audiosocket_listen", s.Listen)
	}
	c.AtLeastOne("audiosocket_connections", s.MaxConnections)
}
