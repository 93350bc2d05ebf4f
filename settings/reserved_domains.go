package settings

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// ReservedDomains returns the host names, in lower case, that belong to this server, to the
// platforms that it reads or dials, and to its OpenID Connect provider, as far as the
// settings tell them; the accounts that feeds name; and more of them. No tenant's account has
// one as its domain or name: calls and events for it would be that account's.
func (s *Settings) ReservedDomains(more ...string) []string {
	addresses := []string{
		s.Listen, s.MetricsListen, s.SIP.Server.Listen, s.SIP.Server.TLSListen, s.SIP.Server.Advertise,
		s.SIP.Server.DefaultDomain,
		s.SIP.Calls.Trunk.Address, s.Auth.OIDC.Issuer, s.Auth.OIDC.RedirectURL,
		s.Origination.Asterisk.Address, s.Origination.FreeSWITCH.Address, s.Origination.FreeSWITCH.Domain,
		s.Origination.Kazoo.URL,
	}

	for _, f := range s.Feeds {
		_, userDomain, _ := strings.Cut(f.User, "@")
		addresses = append(addresses, f.Address, string(f.URL), f.CrossbarURL, userDomain)
		more = append(more, f.Account)
		for _, rule := range f.Accounts {
			more = append(more, rule.Account)
		}
	}

	names := make([]string, 0, len(addresses)+len(more))
	for _, address := range append(addresses, more...) {
		host := strings.ToLower(strings.TrimSuffix(hostOf(address), "."))
		_, err := netip.ParseAddr(host)
		if host != "" && err != nil {
			names = append(names, host)
		}
	}

	slices.Sort(names)
	return slices.Compact(names)
}

// hostOf returns the host of a URL, host:port or host.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err == nil && u.Host != "" {
		return u.Hostname()
	}
	host, _, err := net.SplitHostPort(address)
	if err == nil {
		return host
	}
	return address
}
