package aiprovider

import (
	"trunkline/internal/aiprotocol"
)

// Fallback is the action for a call whose provider stays away.
type Fallback string

// The fallbacks.
const (
	FallbackHangup Fallback = "hangup" // end the call
	FallbackReturn Fallback = "return" // hand it back to where it came from
)

// Provider is one provider, as those who connect to it need it. Log nothing of
// its headers.
type Provider struct {
	ID         string
	AccountID  string
	Name       string
	Format     aiprotocol.Format
	URL        string
	Headers    map[string]string
	Extensions bool     // it understands the extras
	Fallback   Fallback // never ""
}

// String keeps the secrets out of logs and messages.
func (p Provider) String() string { return "AI provider " + p.ID + " of account " + p.AccountID }

// GoString does the same for %#v.
func (p Provider) GoString() string { return p.String() }

// Announcement says whose the call is that will come with this UUID (Asterisk
// AudioSocket), and to which provider it goes.
type Announcement struct {
	AccountID  string
	ProviderID string
	UUID       string // in its usual form, lower case

	// What the session's start shall say; "" where it was not announced.
	CallID         string
	OtherLegCallID string
	CallerIDNumber string
	CalleeIDNumber string
}

// TestReport is the result of a test session.
type TestReport struct {
	OK        bool     `json:"ok"`
	ConnectMS float64  `json:"connect_ms"`      // until the WebSocket was open
	Events    []string `json:"events"`          // names of the messages in order, both ways; never null
	Error     string   `json:"error,omitempty"` // why it is not OK, in words for the account's administrator
}
