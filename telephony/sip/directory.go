package sip

import "context"

// Directory knows who may register and call.
type Directory interface {
	// SIPUser finds the user whose extension is username in a domain: the host
	// part of the address that the phone gave, which is an account's domain or
	// an address of this server. The error is fault.NotFound when there is
	// none; User.Domain may be set even then: it is the realm that the phone
	// is asked to prove itself for, so that guessing learns nothing from it.
	SIPUser(ctx context.Context, domain, username string) (User, error)
}

// User is who a phone belongs to.
type User struct {
	AccountID string
	Domain    string // of the account; the digest realm
	UserID    string
	Extension string // the user part of the phone's address and its digest username
	HA1       string // hex MD5(extension:domain:password)
}

// Devices is told when a phone comes and goes; not of refreshes. Its methods
// must not block.
type Devices interface {
	DeviceRegistered(b Binding)
	DeviceUnregistered(b Binding, reason Unregistered)
}

// Unregistered is why a phone went.
type Unregistered string

// The reasons.
const (
	UnregisteredByDevice Unregistered = "unregistered"
	UnregisteredExpired  Unregistered = "expired"
	UnregisteredReplaced Unregistered = "replaced" // by the same device at a new contact, or by one too many
)
