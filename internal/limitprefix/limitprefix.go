package limitprefix

import "net/netip"

const (
	hostBits = 64 // one link: a host may use any address in it
	siteBits = 56 // the usual allocation to one customer (RFC 6177)
)

// SiteFactor is the limit of a /56 divided by that of a host. It is above 1 because some
// providers put several customers into one /56.
const SiteFactor = 2

// Prefixes are the prefixes under which a client address is counted.
type Prefixes struct {
	Host string // an IPv4 address, or the /64 of an IPv6 address
	Site string // the /56 of an IPv6 address, else ""
}

// Of returns the prefixes of an address without port. Text that is not an address
// becomes Host.
func Of(address string) Prefixes {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return Prefixes{Host: address}
	}
	host, site := OfIP(ip)
	if !site.IsValid() {
		return Prefixes{Host: host.Addr().String()}
	}
	return Prefixes{Host: host.String(), Site: site.String()}
}

// OfIP returns the prefixes of a valid address: the address itself or its /64, and
// the /56 of an IPv6 address; site is invalid for IPv4.
func OfIP(ip netip.Addr) (host, site netip.Prefix) {
	ip = ip.Unmap().WithZone("")
	if ip.Is4() {
		return netip.PrefixFrom(ip, ip.BitLen()), netip.Prefix{}
	}
	return netip.PrefixFrom(ip, hostBits).Masked(), netip.PrefixFrom(ip, siteBits).Masked()
}
