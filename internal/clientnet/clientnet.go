package clientnet

import "net/netip"

const (
	hostBits = 64 // one link: a host uses any address in it
	siteBits = 56 // what a provider commonly gives to one customer (RFC 6177)
)

// SiteFactor is how many times the limit of a host applies to its site. It is
// above 1 because some providers put several customers into one /56.
const SiteFactor = 2

// Networks are those under which a client address is counted.
type Networks struct {
	Host string // an IPv4 address, or the /64 of an IPv6 address
	Site string // the /56 of an IPv6 address, else ""
}

// Of returns the networks of an address without port. Text that is no address is
// its own Host.
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

// Prefixes returns the networks of a valid address: its own or its /64, and the
// /56 of an IPv6 address, else an invalid one.
func Prefixes(ip netip.Addr) (host, site netip.Prefix) {
	ip = ip.Unmap().WithZone("")
	if ip.Is4() {
		return netip.PrefixFrom(ip, ip.BitLen()), netip.Prefix{}
	}
	return netip.PrefixFrom(ip, hostBits).Masked(), netip.PrefixFrom(ip, siteBits).Masked()
}
