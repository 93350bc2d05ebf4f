package api

import (
	"errors"
	"net/http"
	"time"

	"trunkline/internal/setting"
)

// Config holds the settings of the API and the handler of its pages.
type Config struct {
	Settings
	// RequestTimeout bounds an ordinary request; ingest, recordings and the events
	// channel have limits of their own. 30 s when zero.
	RequestTimeout time.Duration
	// StallTimeout ends the upload or download of a recording whose client has
	// not sent or read anything for between half of it and all of it. 1 min when
	// zero.
	StallTimeout time.Duration
	// Board is the live board, with the pages under /docs; nil leaves them out.
	Board http.Handler
}

func (c Config) withDefaults() Config {
	if c.RequestTimeout == 0 {
		c.RequestTimeout = 30 * time.Second
	}
	if c.StallTimeout == 0 {
		c.StallTimeout = time.Minute
	}
	return c
}

// Validate returns an error for settings that cannot work.
func (c Config) Validate() error {
	if c.RequestTimeout < 0 {
		return errors.New("api: RequestTimeout is negative")
	}
	if c.StallTimeout < 0 {
		return errors.New("api: StallTimeout is negative")
	}
	return setting.Validate("", c.Settings)
}
