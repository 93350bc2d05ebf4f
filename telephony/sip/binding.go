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

// Binding is one registered phone.
type Binding struct {
	AOR
	Domain    string         `json:"domain"`
	UserID    string         `json:"user_id"`
	Contact   string         `json:"contact"`            // the URI it registered
	Instance  string         `json:"instance,omitempty"` // the device's own id (RFC 5626), if it has one
	Source    netip.AddrPort `json:"source"`             // where its REGISTER came from: the way back through NAT
	Transport string         `json:"transport"`          // UDP or TCP
	UserAgent string         `json:"user_agent,omitempty"`
	CallID    string         `json:"call_id"`
	CSeq      uint32         `json:"cseq"`
	Since     time.Time      `json:"since"`
	Expires   time.Time      `json:"expires"`
}

// Target is where b is called: by the name it registered, at the address that
// it registered from.
func (b Binding) Target() Target {
	return Target{URI: b.Contact, Destination: b.Source.String(), Transport: b.Transport}
}

// Bindings keeps who is registered, for all nodes together.
type Bindings interface {
	// List returns the bindings of a user that have not expired, oldest first.
	List(ctx context.Context, aor AOR) ([]Binding, error)
	// Put adds b, or replaces the one of the same user and contact.
	Put(ctx context.Context, b Binding) error
	// Remove takes b away and says whether it was there.
	Remove(ctx context.Context, b Binding) (bool, error)
	// Expire takes away what had expired by now, each binding on one node
	// only.
	Expire(ctx context.Context, now time.Time) ([]Binding, error)
}
