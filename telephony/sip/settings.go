package sip

import (
	"cmp"
	"net"
	"net/netip"
	"strings"

	"trunkline/internal/setting"
)

// Off is the value of Listen that disables SIP.
const Off = "off"

// DefaultListen is the address for an empty Listen on the embedded broker.
const DefaultListen = "127.0.0.1:5060"

// Settings holds the settings of the SIP server. DefaultDomain is for the directory.
type Settings struct {
	Listen           string         `yaml:"listen" doc:"SIP over UDP and TCP, host:port, or off; empty: 127.0.0.1:5060 on the embedded broker, else off"`
	TLSListen        string         `yaml:"tls_listen" doc:"SIP over TLS, host:port, such as 192.0.2.1:5061, with the certificate of tls.*; empty: off"`
	SRTP             string         `yaml:"srtp" doc:"encrypted media of phones and PBXs that use TLS: off, optional or required; required refuses calls without TLS"`
	Advertise        string         `yaml:"advertise" doc:"IP address, with or without a port, that SIP and SDP messages name; empty: the address of sip.listen"`
	TrustedNetworks  []netip.Prefix `yaml:"trusted_networks" doc:"networks of PBXs and trunks, whose calls are accepted without authentication"`
	DefaultDomain    string         `yaml:"default_domain" doc:"domain of phones that name this server by its address; empty: that of the root account, where there is only one"`
	DigestAlgorithms []string       `yaml:"digest_algorithms" doc:"algorithms that phones are asked to authenticate with, in order of preference: md5, sha-256; some phones fail on sha-256"`
}

// DefaultSettings returns the settings where nothing is set.
func DefaultSettings() Settings {
	return Settings{SRTP: string(EncryptionOptional), DigestAlgorithms: []string{"md5"}}
}

// ListenAddress returns the address to listen on, "" for none.
func (s Settings) ListenAddress(embeddedBroker bool) string {
	switch {
	case s.Listen == "" && embeddedBroker:
		return DefaultListen
	case s.Listen == Off:
		return ""
	}
	return s.Listen
}

// AdvertisedAddr returns the address of Advertise, the zero value if it is empty.
func (s Settings) AdvertisedAddr() (netip.Addr, error) {
	if s.Advertise == "" {
		return netip.Addr{}, nil
	}
	host, _, err := net.SplitHostPort(s.Advertise)
	if err != nil {
		host = s.Advertise
	}
	return netip.ParseAddr(strings.Trim(host, "[]"))
}

// Validate implements setting.Group.
func (s Settings) Validate(c *setting.Check) {
	if s.Listen != "" && s.Listen != Off {
		host := c.HostPort("listen", s.Listen)
		addr, err := netip.ParseAddr(host)
		c.Must(err == nil, "listen", "want an IP address and a port, got %q", s.Listen)
		c.Must(err != nil || !addr.IsUnspecified() || s.Advertise != "", "advertise",
			"%s on every address needs it: phones send to this address", c.Key("listen"))
	}

	if s.TLSListen != "" {
		c.HostPort("tls_listen", s.TLSListen)
	}

	c.OneOf("srtp", cmp.Or(s.SRTP, string(EncryptionOff)), Encryptions()...)
	c.Must(s.TLSListen != "" || s.SRTP != string(EncryptionRequired), "srtp",
		"required needs %s: keys are exchanged over TLS only", c.Key("tls_listen"))
	_, err := s.AdvertisedAddr()
	c.Must(err == nil, "advertise", "want an IP address, with or without a port, got %q", s.Advertise)
	c.Must(len(s.DigestAlgorithms) > 0, "digest_algorithms", "name at least one of md5, sha-256")

	for _, algorithm := range s.DigestAlgorithms {
		c.OneOf("digest_algorithms", algorithm, "md5", "sha-256")
	}
}
