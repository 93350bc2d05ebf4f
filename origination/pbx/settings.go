package pbx

import (
	"cmp"
	"time"

	"trunkline/internal/setting"
	"trunkline/telephony/sip"
)

// Settings holds the settings of the SIP user agent.
type Settings struct {
	MaxCalls        int           `yaml:"max_calls" doc:"calls at the same time on this node; more are refused with 503"`
	RingUser        time.Duration `yaml:"ring_user" doc:"how long the phones of a call's owner ring"`
	RingDestination time.Duration `yaml:"ring_destination" doc:"how long a destination rings"`
	Trunk           Trunk         `yaml:"trunk"`
}

// Trunk is the SIP trunk for numbers that are not a user's extension.
type Trunk struct {
	Address     string         `yaml:"address" doc:"host or host:port of the trunk; empty: only extensions can be called"`
	Transport   string         `yaml:"transport" doc:"udp, tcp or tls; tls needs sip.tls_listen"`
	CAFile      string         `yaml:"ca_file" file:"authorities" doc:"authorities that the trunk's certificate must be from, PEM; empty: the system's"`
	SRTP        string         `yaml:"srtp" doc:"encrypted media of the trunk: off, optional or required; empty: as sip.srtp"`
	Username    string         `yaml:"username" doc:"user name that the trunk asks for"`
	Password    setting.Secret `yaml:"password" doc:"password that the trunk asks for"`
	CallerID    string         `yaml:"caller_id" doc:"number shown in place of the caller's extension"`
	StripPrefix string         `yaml:"strip_prefix" doc:"prefix removed from a number before it is dialled, such as 0 or +"`
}

// DefaultSettings returns the settings where nothing is set.
func DefaultSettings() Settings {
	return Settings{MaxCalls: 1000, RingUser: 30 * time.Second, RingDestination: time.Minute,
		Trunk: Trunk{Transport: "udp"}}
}

// Validate implements setting.Group.
func (s Settings) Validate(c *setting.Check) {
	c.AtLeastOne("max_calls", s.MaxCalls)
	c.Positive("ring_user", s.RingUser)
	c.Positive("ring_destination", s.RingDestination)
	c.OneOf("trunk.transport", s.Trunk.Transport, "udp", "tcp", "tls")
	c.OneOf("trunk.srtp", cmp.Or(s.Trunk.SRTP, string(sip.EncryptionOff)), sip.Encryptions()...)
	c.Must(s.Trunk.Transport == "tls" || s.Trunk.SRTP != string(sip.EncryptionRequired), "trunk.srtp",
		"required needs %s tls: keys are exchanged over TLS only", c.Key("trunk.transport"))
	other := s.Trunk
	other.Address, other.Transport = "", ""
	c.Must(s.Trunk.Address != "" || other == Trunk{}, "trunk.address", "the trunk's other settings need it")
}
