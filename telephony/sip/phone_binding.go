package sip

import (
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
	Transport string         `json:"transport"` // UDP, TCP or TLS
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
