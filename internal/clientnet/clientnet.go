package clientnet

import "net/netip"

const (
	hostBits = 64 // one link: a host may use any address in it
	siteBits = 56 // the usual allocation to one customer (RFC 6177)
)

// SiteFactor is the factor between the limit of a site and that of a host. It is above
// 1 because some providers put several customers into one /56.
const SiteFactor = 2

// Networks are the networks under which a client address is counted.
type Networks struct {
	Host string // an IPv4 address, or the /64 of an IPv6 address
	Site string // the /56 of an IPv6 address, else ""
}

// Of returns the networks of an address without port. Text that is not an address
// becomes Host.
func Of(address string) Networks {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return Networks{Host: address}
	}
	host, site := Prefixes(ip)
	if !site.IsValid() {
		return Networks{Host: host.Addr().String()}
	}
	return Networks{Host: host.String(), Site: site.String()}
}

// Prefixes returns the networks of a valid address: the address itself or its /64, and
// the /56 of an IPv6 address; site is invalid for IPv4.
func Prefixes(ip netip.Addr) (host, site netip.Prefix) {
	ip = ip.Unmap().WithZone("")
	if ip.Is4() {
		return netip.PrefixFrom(ip, ip.BitLen()), netip.Prefix{}
	}
	return netip.PrefixFrom(ip, hostBits).Masked(), netip.PrefixFrom(ip, siteBits).Masked()
}
