package aicheck

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"trunkline/internal/aiprotocol"
	"trunkline/internal/aiprotocol/dialect"
)

// Config holds the address of the provider and the form of the test session.
type Config struct {
	URL        string // ws:// or wss://
	Header     http.Header
	TLS        *tls.Config
	Format     aiprotocol.Format
	Protocol   string        // one of dialect.Names
	Secret     string        // the provider's secret
	Session    []byte        // the provider's session object; nil if none
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

	protocol, known := dialect.Find(c.Protocol)
	switch {
	case !known:
		return fmt.Errorf("there is no protocol %q: want one of %s", c.Protocol, strings.Join(dialect.Names(), ", "))
	case !slices.Contains(protocol.Encodings, c.Format.Encoding):
		return fmt.Errorf("the protocol %s has the formats %s", protocol.Name, strings.Join(protocol.Encodings, ", "))
	case c.Session != nil && json.Unmarshal(c.Session, new(map[string]any)) != nil:
		return errors.New("the session must be a JSON object")
	}

	if c.Duration < minDuration || c.Duration > maxDuration {
		return fmt.Errorf("the tone must last from %v to %v", minDuration, maxDuration)
	}

	return nil
}

func (c Config) dialect() dialect.Config {
	return dialect.Config{Secret: c.Secret, Session: c.Session, Extensions: c.Extensions, Format: c.Format}
}
