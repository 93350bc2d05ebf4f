package pbx

import (
	"errors"
	"time"

	"trunkline/internal/setting"
	"trunkline/telephony/localcall"
	"trunkline/telephony/sip"
)

const (
	drainTimeout = 5 * time.Second // timeout of a shutdown
	outboxSize   = 20_000          // records waiting to be published
)

// Config has the settings, and values that package app sets.
type Config struct {
	Settings
	MediaServer string      // this node's name, for call records
	Codecs      []sip.Codec // in order of preference; default sip.AllCodecs
	// Encryption decides whether the media of phones and of callers from trusted networks uses SRTP.
	Encryption sip.Encryption
	// Recorder records calls; nil: none are recorded.
	Recorder localcall.Recorder
}

func (c Config) withDefaults() Config {
	if len(c.Codecs) == 0 {
		c.Codecs = sip.AllCodecs()
	}
	if c.Recorder == nil {
		c.Recorder = localcall.NoRecorder{}
	}
	return c
}

// Validate checks c.
func (c Config) Validate() error {
	if c.MediaServer == "" {
		return errors.New("sip driver: the media server has no name")
	}
	return setting.Validate("sip", c.Settings)
}
