package load

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Resume is the position from which a subscriber resumes after its connection has ended.
type Resume string

// The ways to resume.
const (
	ResumeNever    Resume = "never"
	ResumeByID     Resume = "id"     // with the id of the last event
	ResumeByCursor Resume = "cursor" // with the last cursor; the subscriber requests cursors
)

// Group is a set of subscribers that share a token.
type Group struct {
	Token   string
	Query   url.Values // added to the URL's, for a server that takes its token there
	Sockets int
	First   int // first of the streams that the token allows
	Streams int // number of streams
}

// Config configures the subscribers. Zero values are allowed, except for URL, Run and Groups.
type Config struct {
	URL     string // of the endpoint: ws://, wss://, http:// or https://, with its path
	Run     string // name of the run, RunLength bytes: events of other runs are not checked
	Groups  []Group
	TLS     *tls.Config
	Clock   Clock         // zero: a new one
	Sources []netip.Addr  // local addresses to connect from in turn: each allows about 28,000 connections
	Ramp    float64       // new connections per second; 0: as fast as possible
	Dialers int           // concurrent connection attempts; 0: 32
	Workers int           // reading goroutines; 0: 1
	Stalled float64       // share of the subscribers that do not read, 0 to 1
	Resume  Resume        // "": never
	Pause   time.Duration // longest pause before a resume; 0: 1 s
}

// Validate returns the errors of the configuration.
func (c *Config) Validate() error {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Host == "" || !strings.Contains(" ws wss http https ", " "+u.Scheme+" "):
		return fmt.Errorf("the URL must be wss://host:port/path, got %q", c.URL)
	case len(c.Run) != RunLength || strings.ContainsAny(c.Run, `"\`):
		return fmt.Errorf("the run's name must have %d characters", RunLength)
	case len(c.Groups) == 0:
		return errors.New("no subscribers are configured")
	case c.Ramp < 0 || c.Dialers < 0 || c.Workers < 0 || c.Pause < 0:
		return errors.New("ramp, dialers, workers and pause cannot be negative")
	case c.Stalled < 0 || c.Stalled > 1:
		return errors.New("the stalled share must be from 0 to 1")
	case c.Resume != ResumeNever && c.Resume != ResumeByID && c.Resume != ResumeByCursor && c.Resume != "":
		return fmt.Errorf("resume must be %s, %s or %s, not %q", ResumeNever, ResumeByID, ResumeByCursor, c.Resume)
	}

	for _, g := range c.Groups {
		if g.Sockets < 1 || g.First < 0 || g.Streams < 0 || g.First+g.Streams > MaxStreams {
			return fmt.Errorf("a group needs sockets, and its streams lie from 0 to %d", MaxStreams)
		}
	}

	return nil
}

func (c Config) withDefaults() Config {
	if c.Clock.startedAt.IsZero() {
		c.Clock = NewClock()
	}
	if c.Dialers == 0 {
		c.Dialers = 32
	}
	if c.Workers == 0 {
		c.Workers = 1
	}
	if c.Resume == "" {
		c.Resume = ResumeNever
	}
	if c.Pause == 0 {
		c.Pause = time.Second
	}

	return c
}
