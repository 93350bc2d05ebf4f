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
	// StallTimeout ends the upload or download of a recording whose client has not sent
	// or read anything for at least half of it and at most all of it. Default: 1 min.
	StallTimeout time.Duration
	// Board serves the live board and the pages under /docs; nil if there are none.
	Board http.Handler
}

func (c Config) withDefaults() Config {
	if c.StallTimeout == 0 {
		c.StallTimeout = time.Minute
	}
	return c
}

// Validate returns an error for invalid settings.
func (c Config) Validate() error {
	if c.StallTimeout < 0 {
		return errors.New("api: StallTimeout is negative")
	}
	return setting.Validate("", c.Settings)
}
