package sip

import (
	"context"
	"net/netip"
	"time"
)

// AOR is an address of record: the user whose phones register.
type AOR struct {
	AccountID string
	Extension string
}

// Binding is the registration of one phone.
type Binding struct {
	AOR
	Domain   string `json:"domain"`
	UserID   string `json:"user_id"`
	Contact  string `json:"contact"`            // registered URI
	Instance string `json:"instance,omitempty"` // device id (RFC 5626), if the phone has one
	// source address of the REGISTER: requests go there, through NAT
	Source    netip.AddrPort `json:"source"`
	Transport string         `json:"transport"` // UDP or TCP
	UserAgent string         `json:"user_agent,omitempty"`
	CallID    string         `json:"call_id"`
	CSeq      uint32         `json:"cseq"`
	Since     time.Time      `json:"since"`
	Expires   time.Time      `json:"expires"`
}

// Target returns the target of a call to b: the registered user part at the address that the REGISTER
// came from.
func (b Binding) Target() Target {
	return Target{URI: b.Contact, Destination: b.Source.String(), Transport: b.Transport}
}

// Bindings stores the registrations of all nodes.
type Bindings interface {
	// List returns the bindings of a user that have not expired, oldest first.
	List(ctx context.Context, aor AOR) ([]Binding, error)
	// Put creates b, or replaces the binding of the same user and contact.
	Put(ctx context.Context, b Binding) error
	// Remove deletes b and reports whether it existed.
	Remove(ctx context.Context, b Binding) (bool, error)
	// Expire deletes and returns the bindings that had expired by now. Each binding is returned on one
	// node only.
	Expire(ctx context.Context, now time.Time) ([]Binding, error)
}
