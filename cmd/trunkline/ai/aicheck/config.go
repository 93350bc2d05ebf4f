package aicheck

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"trunkline/internal/aiprotocol"
)

// Config holds the address of the provider and the form of the test session.
type Config struct {
	URL        string // ws:// or wss://
	Header     http.Header
	TLS        *tls.Config
	Format     aiprotocol.Format
	Extensions bool          // the provider has extensions: true
	Duration   time.Duration // of the tone
}

// Bounds of a check.
const (
	minDuration = 500 * time.Millisecond
	maxDuration = 10 * time.Minute
)

// Validate returns the errors of the configuration.
func (c Config) Validate() error {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "ws" && u.Scheme != "wss" || u.Host == "" {
		return errors.New("the provider's address must be wss://host… or ws://host…")
	}
	_, known := aiprotocol.FormatOf(c.Format.Encoding)
	if !known {
		return fmt.Errorf("there is no format %q", c.Format.Encoding)
	}
	if c.Duration < minDuration || c.Duration > maxDuration {
		return fmt.Errorf("the tone must last from %v to %v", minDuration, maxDuration)
	}
	return nil
}
