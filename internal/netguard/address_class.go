package netguard

import "net/netip"

// Class is the kind of an address. Classes are bounded: they may be metric
// labels.
type Class string

// The classes. Guard rejects all but ClassPublic.
const (
	ClassPublic      Class = "public"
	ClassNotLoopback Class = "plain"       // and the URL, without TLS, may lead to loopback alone
	ClassUnknown     Class = "unknown"     // not a valid address
	ClassUnspecified Class = "unspecified" // this machine, on many systems
	ClassLoopback    Class = "loopback"
	ClassLinkLocal   Class = "link_local"
	ClassPrivate     Class = "private" // also IPv6 unique local and site local
	ClassShared      Class = "shared"  // a provider's own network behind its NAT
	ClassMulticast   Class = "multicast"
	ClassMetadata    Class = "metadata" // a cloud's metadata services
	ClassReserved    Class = "reserved" // documentation, tests, protocols, future use
)

// specialNetworks lists the networks that are not public, narrower ones before wider ones
// (IANA's special-purpose registries, and the clouds' documentation). Those of IPv6 that are public are
// here too, because the rest of IPv6 is reserved. Of embeddingNetworks, ClassPublic says only that the
// network itself is not rejected: Guard.Check then looks at the embedded IPv4 address.
var specialNetworks = []struct {
	network netip.Prefix
	class   Class
}{
	{prefix("169.254.169.254/32"), ClassMetadata}, // most clouds
	{prefix("169.254.170.2/32"), ClassMetadata},   // AWS containers
	{prefix("168.63.129.16/32"), ClassMetadata},   // Azure, a public address
	{prefix("100.100.100.200/32"), ClassMetadata}, // Alibaba
	{prefix("192.0.0.192/32"), ClassMetadata},     // Oracle
	{prefix("fd00:ec2::254/128"), ClassMetadata},  // AWS
	{prefix("fd20:ce::254/128"), ClassMetadata},   // Google

	{prefix("0.0.0.0/8"), ClassUnspecified},
	{prefix("10.0.0.0/8"), ClassPrivate},
	{prefix("100.64.0.0/10"), ClassShared},
	{prefix("127.0.0.0/8"), ClassLoopback},
	{prefix("169.254.0.0/16"), ClassLinkLocal},
	{prefix("172.16.0.0/12"), ClassPrivate},
	{prefix("192.0.0.0/24"), ClassReserved},
	{prefix("192.0.2.0/24"), ClassReserved},
	{prefix("192.31.196.0/24"), ClassReserved},
	{prefix("192.52.193.0/24"), ClassReserved},
	{prefix("192.88.99.0/24"), ClassReserved},
	{prefix("192.168.0.0/16"), ClassPrivate},
	{prefix("192.175.48.0/24"), ClassReserved},
	{prefix("198.18.0.0/15"), ClassReserved},
	{prefix("198.51.100.0/24"), ClassReserved},
	{prefix("203.0.113.0/24"), ClassReserved},
	{prefix("224.0.0.0/4"), ClassMulticast},
	{prefix("240.0.0.0/4"), ClassReserved},

	{prefix("::/128"), ClassUnspecified},
	{prefix("::1/128"), ClassLoopback},
	{prefix("64:ff9b::/96"), ClassPublic}, // NAT64: the embedded address decides
	{prefix("fc00::/7"), ClassPrivate},
	{prefix("fe80::/10"), ClassLinkLocal},
	{prefix("fec0::/10"), ClassPrivate},
	{prefix("ff00::/8"), ClassMulticast},
	{prefix("2001::/23"), ClassReserved}, // protocols, Teredo among them
	{prefix("2001:db8::/32"), ClassReserved},
	{prefix("2002::/16"), ClassPublic}, // 6to4: the embedded address decides
	{prefix("2620:4f:8000::/48"), ClassReserved},
	{prefix("3fff::/20"), ClassReserved},
	{prefix("2000::/3"), ClassPublic},
	{prefix("::/0"), ClassReserved}, // nothing else of IPv6 is in use
}

func prefix(text string) netip.Prefix { return netip.MustParsePrefix(text) }

// classOf returns the class of an address, without regard to embedded ones.
func classOf(address netip.Addr) Class {
	if !address.IsValid() {
		return ClassUnknown
	}
	for _, s := range specialNetworks {
		if s.network.Contains(address) {
			return s.class
		}
	}
	return ClassPublic
}

// embeddingNetworks are the IPv6 networks whose addresses contain an IPv4 address, with its
// offset in bytes.
var embeddingNetworks = []struct {
	network netip.Prefix
	offset  int
}{
	{prefix("64:ff9b::/96"), 12}, // NAT64, RFC 6052
	{prefix("2002::/16"), 2},     // 6to4, RFC 3056
}

// embeddedIPv4 returns the embedded IPv4 address, or an invalid one. Older forms are not
// in use and are reserved; an IPv4-mapped address returns its IPv4 address.
func embeddedIPv4(address netip.Addr) netip.Addr {
	for _, e := range embeddingNetworks {
		if e.network.Contains(address) {
			bytes := address.As16()
			return netip.AddrFrom4([4]byte(bytes[e.offset : e.offset+4]))
		}
	}
	return netip.Addr{}
}
