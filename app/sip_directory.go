package app

import (
	"context"
	"net/netip"

	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/telephony/sip"
)

// sipDirectory adapts the directory for phones.
type sipDirectory struct {
	directory     *identity.Directory
	credentials   *identity.Credentials
	defaultDomain string // setting sip.default_domain; "": none
}

// SIPUser implements sip.Directory. A phone whose domain is this server's address, or
// any other than an account's, belongs to the default domain.
func (d sipDirectory) SIPUser(ctx context.Context, domain, username string) (sip.User, error) {
	account, ok := d.directory.Tree().ByDomain(domain)
	if !ok {
		account, ok = d.defaultAccount()
		if !ok {
			return sip.User{}, fault.NotFound("There is no phone of that name")
		}
	}

	phone, err := d.directory.FindPhone(ctx, account.Domain, username)
	return sip.User{AccountID: account.ID, Domain: account.Domain, UserID: phone.UserID, Extension: phone.Extension},
		err
}

// Authenticate implements sip.Authenticator.
func (d sipDirectory) Authenticate(ctx context.Context, user sip.User, from netip.Addr,
	proves func(sip.HA1) bool) error {
	return d.credentials.AuthenticatePhone(ctx, user.Domain, user.Extension, from.Unmap().String(),
		func(ha1 identity.HA1) bool {
			return proves(sip.HA1(ha1))
		})
}

// defaultAccount returns the account of the default domain, or the root account where it has no
// other beside it: the realm of a challenge would tell a stranger the domain of some tenant.
func (d sipDirectory) defaultAccount() (identity.Account, bool) {
	if d.defaultDomain != "" {
		return d.directory.Tree().ByDomain(d.defaultDomain)
	}
	return d.directory.Tree().OnlyRoot()
}
