package channelclient

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"time"
)

// PathSet is one of the channel's two identical sets of endpoints.
type PathSet string

// The two path sets.
const (
	PathsAPI PathSet = "api" // under /api/v2/cc_events_channel
	PathsWS  PathSet = "ws"  // under /ws/v1/cc_events
)

func (p PathSet) login() string {
	if p == PathsWS {
		return "/ws/v1/cc_events/login"
	}
	return "/api/v2/cc_events_channel/login"
}

func (p PathSet) socket() string {
	if p == PathsWS {
		return "/ws/v1/cc_events"
	}
	return "/api/v2/cc_events_channel/ws"
}

// Filter selects events. A list that is empty does not narrow; all that are
// given must hold.
type Filter struct {
	AccountIDs []string `json:"account_ids,omitempty"`
	EventTypes []string `json:"event_types,omitempty"`
	QueueIDs   []string `json:"queue_ids,omitempty"`
	AgentIDs   []string `json:"agent_ids,omitempty"`
	CallIDs    []string `json:"call_ids,omitempty"`
	Names      []string `json:"names,omitempty"` // of facts: exact, or a class such as "call.*"
}

// Config holds the server, the credentials and the filters of a client.
type Config struct {
	URL      string // https://host:port, or http:// behind a proxy
	Paths    PathSet
	Username string
	Password string
	Domain   string
	Filter   Filter
	Since    string // event id, cursor or "earliest"; "": from now on

	TLS    *tls.Config       // nil: the system's authorities
	Status func(text string) // called on changes of the connection; nil: not called

	RetryMin time.Duration // 0: 250 ms
	RetryMax time.Duration // 0: 30 s
	Silence  time.Duration // read timeout, reset by every frame; 0: 60 s
}

// Validate returns an error for settings that cannot work.
func (c Config) Validate() error {
	parsed, err := url.Parse(c.URL)
	switch {
	case err != nil || parsed.Host == "" || parsed.Scheme != "https" && parsed.Scheme != "http":
		return fmt.Errorf("the URL must be https://host:port, got %q", c.URL)
	case parsed.User != nil:
		return errors.New("the URL must not hold a user or password")
	case c.Paths != PathsAPI && c.Paths != PathsWS:
		return fmt.Errorf("the path set must be %s or %s, got %q", PathsAPI, PathsWS, c.Paths)
	case c.Username == "" || c.Password == "" || c.Domain == "":
		return errors.New("username, password and domain are needed")
	}
	return nil
}
