package aiprovider

import (
	"trunkline/internal/aiprotocol"
)

// Fallback is the action for a call whose provider is unavailable.
type Fallback string

// The fallbacks.
const (
	FallbackHangup Fallback = "hangup" // end the call
	FallbackReturn Fallback = "return" // return the call to its origin
)

// Mode says whether a provider answers calls or only listens to them.
type Mode string

// The modes.
const (
	ModeAnswer Mode = "answer" // it is a party of the call
	ModeListen Mode = "listen" // it hears the voices of a call of others, and may send transcripts
)

// Provider is one provider with its secrets unsealed, for a connection to it. Never log
// its headers and secret.
type Provider struct {
	ID         string
	AccountID  string
	Name       string
	Format     aiprotocol.Format
	URL        string
	Headers    map[string]string
	Protocol   string   // one of dialect.Names; "" is the default
	Secret     string   // the vendor's token; "" if none
	Session    []byte   // a JSON object for the vendor; nil if none
	Listens    bool     // it only hears calls: mode listen
	Extensions bool     // it supports the protocol's extensions
	Fallback   Fallback // never ""
}

// String returns the ids only, so that logs and messages have no secrets.
func (p Provider) String() string { return "AI provider " + p.ID + " of account " + p.AccountID }

// GoString is String for %#v.
func (p Provider) GoString() string { return p.String() }

// Announcement assigns the account and AI provider of a call that will arrive with the
// UUID (Asterisk AudioSocket).
type Announcement struct {
	AccountID  string
	ProviderID string
	UUID       string // in its canonical form, lower case

	// Fields of the session's start message; may be "".
	CallID         string
	OtherLegCallID string
	CallerIDNumber string
	CalleeIDNumber string
}

// TestReport is the result of a test session.
type TestReport struct {
	OK        bool     `json:"ok"`
	ConnectMS float64  `json:"connect_ms"`      // until the WebSocket was open
	Events    []string `json:"events"`          // names of the messages in order, in both directions; never null
	Error     string   `json:"error,omitempty"` // the reason of a failure, for the account's administrator
}
