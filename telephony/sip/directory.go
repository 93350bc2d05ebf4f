package sip

import (
	"context"
	"net/netip"
)

// Directory finds the users of phones.
type Directory interface {
	// SIPUser finds the user with the extension username in a domain. domain is the host part of the
	// address that the phone sent: an account's domain or an address of this server. The error is
	// fault.NotFound if there is none. User.Domain may be set even then: it is the realm of the
	// challenge, so that a guess does not reveal whether the user exists.
	SIPUser(ctx context.Context, domain, username string) (User, error)
}

// Authenticator authenticates the users who may register and call.
type Authenticator interface {
	Directory
	// Authenticate authenticates a user, found or not found by SIPUser, at an address that was verified
	// to be the phone's. proves reports whether the phone has the password of an HA1; it may be called
	// for several passwords. The error is fault.Unauthenticated if it never returned true, and
	// fault.Limited if there were too many failures.
	Authenticate(ctx context.Context, user User, from netip.Addr, proves func(HA1) bool) error
}

// User is the user of a phone.
type User struct {
	AccountID string
	Domain    string // SIP domain of the account; the digest realm
	UserID    string
	Extension string // user part of the phone's address and digest username
}

// HA1 has the hashes of extension:domain:password (RFC 7616, section 3.4.2) in hex; "" for none.
type HA1 struct{ MD5, SHA256 string }
