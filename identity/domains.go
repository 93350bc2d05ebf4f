package identity

import (
	"context"
	"database/sql"
	"net/netip"
	"slices"
	"strings"

	"trunkline/internal/fault"
)

// namer is who chooses an account's id, name and domain: the operator ("") by a
// management command or a directory file, a feed that follows its platform's accounts, or
// the administrators and keys of an account. It is stored as identity_accounts.named_by,
// because only names that the operator chose are trusted where others speak of an account
// by its name (resolveClaimedAccount).
type namer string

const (
	namerFeed         namer = "feed:"
	namerTenantPrefix namer = "tenant:"
)

// newNamer returns the namer of a change that by asks for, nil for none, or that a feed
// makes.
func newNamer(by *Principal, fromFeed bool) namer {
	switch {
	case by != nil:
		return namerTenantPrefix + namer(by.AccountID)
	case fromFeed:
		return namerFeed
	}
	return ""
}

// tenant returns the id of the account whose administrator or key chooses.
func (n namer) tenant() (accountID string, ok bool) {
	return strings.CutPrefix(string(n), string(namerTenantPrefix))
}

const codeReserved = "reserved"

// checkNames checks the names that a account gets in place of those of old (zero for a new
// account); what an account has already stays allowed. The operator may choose any but an
// IP address, which belongs to whoever has the address. No other may choose a name that
// calls and events use for this server, its feeds or its provider: those are resolved by
// domain first. A tenant chooses names below its own.
func (s *Service) checkNames(tree *Tree, n namer, account, old Account, chosenID bool, bad *problems) {
	own := Account{}
	tenant, isTenant := n.tenant()
	if isTenant {
		own, _ = tree.Account(tenant)
	}
	if account.Domain != old.Domain {
		s.checkDomain(n, own, account.Domain, bad)
	}
	if isTenant && chosenID && !belowID(own.ID, account.ID) {
		bad.add("id", codeReserved, "an id that you choose begins with "+quote(own.ID+"-")+"; leave it out to get one")
	}
	// A name is looked up before a domain.
	if n != "" && account.Name != old.Name && looksLikeDomain(account.Name) && !strings.EqualFold(account.Name, account.Domain) {
		var badName problems
		s.checkDomain(n, own, strings.ToLower(account.Name), &badName)
		for _, f := range badName {
			bad.add("name", f.Code, f.Message)
		}
	}
}

// checkDomain checks a lower-case domain that n chooses. own is the account of a tenant.
func (s *Service) checkDomain(n namer, own Account, domain string, bad *problems) {
	host := strings.TrimSuffix(domain, ".")
	_, isTenant := n.tenant()
	switch {
	case isAddress(host):
		bad.add("domain", codeReserved, "a domain is not an IP address")
	case n == "" || slices.Contains(s.cfg.Accounts.Domains, host):
	case isReserved(s.cfg.ReservedDomains, host):
		bad.add("domain", codeReserved, "the domain is a name of this server, of a platform that it reads, or of its OpenID Connect provider")
	case isTenant && !belowDomain(own.Domain, host) && !s.listedAbove(host):
		bad.add("domain", codeReserved, "a domain ends in "+quote("."+own.Domain)+", or is in the operator's list (account.domains)")
	}
}

// listedAbove reports whether the operator's list has "*." and a domain above host.
func (s *Service) listedAbove(host string) bool {
	return slices.ContainsFunc(s.cfg.Accounts.Domains, func(listed string) bool {
		above, wildcard := strings.CutPrefix(listed, "*.")
		return wildcard && belowDomain(above, host)
	})
}

func belowDomain(above, host string) bool {
	return above != "" && len(host) > len(above)+1 && strings.HasSuffix(host, "."+above)
}

// belowID reports whether id is one that the account own may choose: its own id, a
// separator, and more.
func belowID(own, id string) bool {
	rest, ok := strings.CutPrefix(id, own)
	return ok && len(rest) > 1 && strings.ContainsRune("-_.", rune(rest[0]))
}

// isReserved reports whether host is one of the lower-case names, or below localhost.
func isReserved(names []string, host string) bool {
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || slices.Contains(names, host)
}

// isAddress reports whether resolvers and phones can read a host as an IP address: also
// ::1, [::1], 127.1, 0x7f000001 and 2130706433.
func isAddress(host string) bool {
	bare := strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	_, err := netip.ParseAddr(bare)
	if err == nil || strings.Contains(host, ":") {
		return true
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	isDigits := last != "" && strings.Trim(last, "0123456789") == ""
	hex, isHex := strings.CutPrefix(last, "0x")
	return isDigits || isHex && strings.Trim(hex, "0123456789abcdef") == ""
}

// looksLikeDomain reports whether a name could be taken for a domain.
func looksLikeDomain(name string) bool {
	return strings.Contains(name, ".") && !strings.Contains(name, " ")
}

// checkNotDeleted returns fault.KindConflict if a deleted account had the name or domain of
// a: its phones, platforms and logins may still use them.
func (s *Service) checkNotDeleted(ctx context.Context, tx *sql.Tx, a Account) error {
	since := s.cfg.Now().Add(-s.cfg.Accounts.PurgeAfter).UnixMilli()
	return conflictIfExists(ctx, tx, fault.Conflict("The name or domain is that of a deleted account, and is taken until account.purge_after has passed"),
		"reading deleted accounts",
		`SELECT 1 FROM identity_deleted_accounts WHERE deleted_at > $1 AND (id = $3 OR name IN ($2, $3, $4) OR domain IN ($4, $5, $6))`,
		since, a.ID, a.Name, a.Domain, strings.ToLower(a.ID), strings.ToLower(a.Name))
}
