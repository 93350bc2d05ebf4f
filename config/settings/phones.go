package settings

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// SIP is read by app, for telephony/sip, telephony/rtp and telephony/pbx.
type SIP struct {
	Listen          string         `yaml:"listen" doc:"SIP over UDP and TCP, host:port, or off; empty: 127.0.0.1:5060 on the embedded broker, else off"`
	Advertise       string         `yaml:"advertise" doc:"IP address, with or without a port, that SIP and SDP messages name; empty: the address of sip.listen"`
	TrustedNetworks []netip.Prefix `yaml:"trusted_networks" doc:"networks of PBXs and trunks, whose calls are accepted without authentication"`
	DefaultDomain   string         `yaml:"default_domain" doc:"domain of phones that name this server by its address; empty: the oldest account's"`
	RTPPorts        string         `yaml:"rtp_ports" doc:"UDP ports of media, first-last"`
	MaxCalls        int            `yaml:"max_calls" doc:"calls at the same time on this node; more are refused with 503"`
	RingUser        time.Duration  `yaml:"ring_user" doc:"how long the phones of a call's owner ring"`
	RingDestination time.Duration  `yaml:"ring_destination" doc:"how long a destination rings"`
	Trunk           SIPTrunk       `yaml:"trunk"`
}

// SIPTrunk is the trunk for numbers that are no user's extension.
type SIPTrunk struct {
	Address     string `yaml:"address" doc:"host or host:port of the trunk; empty: only extensions can be called"`
	Transport   string `yaml:"transport" doc:"udp or tcp"`
	Username    string `yaml:"username" doc:"user name that the trunk asks for"`
	Password    Secret `yaml:"password" doc:"password that the trunk asks for"`
	CallerID    string `yaml:"caller_id" doc:"number shown in place of the caller's extension"`
	StripPrefix string `yaml:"strip_prefix" doc:"prefix removed from a number before it is dialled, such as 0 or +"`
}

// FreeSWITCH is read by app, for origination/freeswitch. In the dial strings
// stand {extension}, {domain}, {destination} and {context}.
type FreeSWITCH struct {
	Address         string        `yaml:"address" doc:"host:port of the event socket"`
	User            string        `yaml:"user" doc:"user@domain of the directory to log in as; empty: the password alone"`
	Password        Secret        `yaml:"password" doc:"password of the event socket"`
	Owner           string        `yaml:"owner" doc:"dial string of the owner's phones"`
	Destination     string        `yaml:"destination" doc:"dial string of the destination"`
	Context         string        `yaml:"context" doc:"dialplan context in which destinations are looked up"`
	Domain          string        `yaml:"domain" doc:"domain of the users on the switch; empty: the account's domain or the switch's own, whichever the switch's directory has the owner in"`
	CallerID        string        `yaml:"caller_id" doc:"caller number shown to the destination"`
	CallerName      string        `yaml:"caller_name" doc:"caller name shown to the destination"`
	Ringback        string        `yaml:"ringback" doc:"tone for the owner while the destination rings, - for none"`
	RingUser        time.Duration `yaml:"ring_user" doc:"how long the phones of a call's owner ring"`
	RingDestination time.Duration `yaml:"ring_destination" doc:"how long a destination rings"`
	AllEvents       bool          `yaml:"all_events" doc:"subscribe to all events, to notice missing ones at once"`
}

func defaultSIP() SIP {
	return SIP{RTPPorts: "20000-29999", MaxCalls: 1000, RingUser: 30 * time.Second, RingDestination: time.Minute,
		Trunk: SIPTrunk{Transport: "udp"}}
}

func defaultFreeSWITCH() FreeSWITCH {
	return FreeSWITCH{
		Owner: "user/{extension}@{domain}", Destination: "loopback/{destination}/{context}/XML", Context: "default",
		CallerID: "{extension}", CallerName: "{extension}", Ringback: "%(2000,4000,440,480)",
		RingUser: 30 * time.Second, RingDestination: time.Minute,
	}
}

// Off is the value of sip.listen for no SIP at all.
const Off = "off"

// Ports returns the first and last port of RTPPorts.
func (s *SIP) Ports() (first, last uint16, ok bool) {
	from, to, dash := strings.Cut(s.RTPPorts, "-")
	a, errA := strconv.ParseUint(strings.TrimSpace(from), 10, 16)
	b, errB := strconv.ParseUint(strings.TrimSpace(to), 10, 16)
	return uint16(a), uint16(b), dash && errA == nil && errB == nil && a > 0 && b > a
}

// AdvertisedAddr returns the address of Advertise, the zero one when it is
// empty.
func (s *SIP) AdvertisedAddr() (netip.Addr, error) {
	if s.Advertise == "" {
		return netip.Addr{}, nil
	}
	host, _, err := net.SplitHostPort(s.Advertise)
	if err != nil {
		host = s.Advertise
	}
	return netip.ParseAddr(strings.Trim(host, "[]"))
}

func (c *checks) sip(s *SIP) {
	if s.Listen != "" && s.Listen != Off {
		host := c.hostPort("sip.listen", s.Listen)
		addr, err := netip.ParseAddr(host)
		c.must(err == nil, "sip.listen", "want an IP address and a port, got %q", s.Listen)
		c.must(err != nil || !addr.IsUnspecified() || s.Advertise != "", "sip.advertise",
			"sip.listen on every address needs it: it is what phones are told")
	}
	_, err := s.AdvertisedAddr()
	c.must(err == nil, "sip.advertise", "want an IP address, with or without a port, got %q", s.Advertise)
	_, _, ok := s.Ports()
	c.must(ok, "sip.rtp_ports", "want ports such as 20000-29999, got %q", s.RTPPorts)
	c.must(s.MaxCalls >= 1, "sip.max_calls", "must be at least 1, is %d", s.MaxCalls)
	c.positive("sip.ring_user", s.RingUser)
	c.positive("sip.ring_destination", s.RingDestination)
	c.oneOf("sip.trunk.transport", s.Trunk.Transport, "udp", "tcp")
	other := s.Trunk
	other.Address, other.Transport = "", ""
	c.must(s.Trunk.Address != "" || other == SIPTrunk{}, "sip.trunk.address", "the trunk's other settings need it")
}

func (c *checks) freeswitch(f *FreeSWITCH) {
	c.dialable("origination.freeswitch.address", f.Address)
	c.must(f.Password != "", "origination.freeswitch.password", "origination.driver freeswitch needs it")
	c.must(f.RingUser >= time.Second, "origination.freeswitch.ring_user", "must be at least 1s, is %s", shortDuration(f.RingUser))
	c.must(f.RingDestination >= time.Second, "origination.freeswitch.ring_destination", "must be at least 1s, is %s",
		shortDuration(f.RingDestination))
}
