package identity

import (
	"context"
	"database/sql"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"trunkline/internal/fault"
)

// nameChooser identifies who chose an account's id, name and domain: the operator ("") by a
// management command or a directory file, a feed that follows its platform's accounts, or
// the administrators and keys of an account. It is stored as identity_accounts.named_by,
// because only names that the operator chose are trusted where others speak of an account
// by its name (resolveClaimedAccount).
type nameChooser string

const (
	chooserFeed         nameChooser = "feed:"
	chooserTenantPrefix nameChooser = "tenant:"
)

// newNameChooser returns who chooses in a change that by asks for, nil for none, or that a feed
// makes.
func newNameChooser(by *Principal, fromFeed bool) nameChooser {
	switch {
	case by != nil:
		return chooserTenantPrefix + nameChooser(by.AccountID)
	case fromFeed:
		return chooserFeed
	}
	return ""
}

// tenant returns the id of the account whose administrator or key chooses.
func (n nameChooser) tenant() (accountID string, ok bool) {
	return strings.CutPrefix(string(n), string(chooserTenantPrefix))
}

const codeReserved = "reserved"

// checkNames checks the names that a account gets in place of those of old (zero for a new
// account); what an account has already stays allowed. The operator may choose any but an
// IP address, which belongs to whoever has the address. No other may choose a name that
// calls and events use for this server, its feeds or its provider: those are resolved by
// domain first. A tenant chooses names below its own.
func (c *Config) checkNames(tree *Tree, n nameChooser, account, old Account, chosenID bool, bad *fieldProblems) {
	own := Account{}
	tenant, isTenant := n.tenant()
	if isTenant {
		own, _ = tree.Account(tenant)
	}
	if account.Domain != old.Domain {
		c.checkDomain(n, own, account.Domain, bad)
	}
	if isTenant && chosenID && !belowID(own.ID, account.ID) {
		bad.add("id", codeReserved, "an id that you choose begins with "+quote(own.ID+"-")+"; leave it out to get one")
	}

	if isTenant && account.Name != old.Name {
		checkLookAlike(tree, account, bad)
		if slices.Contains(c.ReservedDomains, strings.ToLower(account.Name)) {
			bad.add("name", codeReserved, "the name is one that the settings of this server speak of")
		}
	}

	// A name is looked up before a domain.
	if n != "" && account.Name != old.Name && looksLikeDomain(account.Name) &&
		!strings.EqualFold(account.Name, account.Domain) {
		var badName fieldProblems
		c.checkDomain(n, own, strings.ToLower(account.Name), &badName)
		for _, f := range badName {
			bad.add("name", f.Code, f.Message)
		}
	}
}

// checkDomain checks a lower-case domain that n chooses. own is the account of a tenant.
func (c *Config) checkDomain(n nameChooser, own Account, domain string, bad *fieldProblems) {
	host := strings.TrimSuffix(domain, ".")
	_, isTenant := n.tenant()
	switch {
	case isTenant && !hostName.MatchString(domain):
		bad.add("domain", codeInvalid, "a domain has labels of a-z, 0-9, - and _ with dots between them")
	case isAddress(host):
		bad.add("domain", codeReserved, "a domain is not an IP address")
	case n == "" || slices.Contains(c.Accounts.Domains, host):
	case isReserved(c.ReservedDomains, host):
		bad.add("domain", codeReserved,
			"the domain is a name of this server, of a platform that it reads, or of its OpenID Connect provider")
	case isTenant && !belowDomain(own.Domain, host) && !c.listedAbove(host):
		bad.add("domain", codeReserved,
			"a domain ends in "+quote("."+own.Domain)+", or is in the operator's list (account.domains)")
	}
}

// hostName is a name in lower case without a dot at its end.
var hostName = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$`)

// checkLookAlike checks that the name that a tenant chooses is not easily taken for that of
// another account by who reads it: by an operator, or in a log.
func checkLookAlike(tree *Tree, account Account, bad *fieldProblems) {
	if mixesAlphabets(account.Name) {
		bad.add("name", codeInvalid, "a word of the name has letters of several alphabets")
		return
	}

	folded := foldName(account.Name)
	for id, other := range tree.nodesByID {
		for _, taken := range []string{id, other.account.Name} {
			if id != account.ID && taken != account.Name && foldName(taken) == folded { // the same name is a conflict
				bad.add("name", codeTaken, "the name looks like that of another account")
				return
			}
		}
	}
}

// foldName returns a name without differences of case and of the width of letters.
func foldName(name string) string { return strings.ToLower(norm.NFKC.String(name)) }

// mixesAlphabets reports whether a word of the name has letters of several alphabets that
// have letters in common, as an e of Cyrillic in a word of Latin.
func mixesAlphabets(name string) bool {
	for _, word := range strings.FieldsFunc(name, notAlphanumeric) {
		alphabets := 0
		for _, alphabet := range []*unicode.RangeTable{unicode.Latin, unicode.Cyrillic, unicode.Greek} {
			if strings.ContainsFunc(word, func(r rune) bool { return unicode.Is(alphabet, r) }) {
				alphabets++
			}
		}

		if alphabets > 1 {
			return true
		}
	}

	return false
}

// listedAbove reports whether the operator's list has "*." and a domain above host.
func (c *Config) listedAbove(host string) bool {
	return slices.ContainsFunc(c.Accounts.Domains, func(listed string) bool {
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
// a, or one of them as its id: its phones, platforms and logins may still use them.
func (d *Directory) checkNotDeleted(ctx context.Context, tx *sql.Tx, a Account) error {
	since := d.cfg.Now().Add(-d.cfg.Accounts.PurgeAfter).UnixMilli()
	return conflictIfExists(ctx, tx,
		fault.Conflict("The name or domain is that of a deleted account, and is taken until account.purge_after has passed"),
		"reading deleted accounts",
		`SELECT 1 FROM identity_deleted_accounts WHERE deleted_at > $1 AND (id IN ($3, $4) OR name IN ($2, $3, $4) OR domain IN ($4, $5, $6))`,
		since, a.ID, a.Name, a.Domain, strings.ToLower(a.ID), strings.ToLower(a.Name))
}
