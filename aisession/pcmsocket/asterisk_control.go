package pcmsocket

import (
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	"trunkline/telephony/audio"
)

// Control messages of Asterisk's chan_websocket (23.4), in plain text or JSON as its dialplan chose.
const (
	mediaStart         = "MEDIA_START"
	mediaXOFF          = "MEDIA_XOFF"
	mediaXON           = "MEDIA_XON"
	mediaMarkProcessed = "MEDIA_MARK_PROCESSED"
	dtmfEnd            = "DTMF_END"

	commandAnswer = "ANSWER"
	commandHangup = "HANGUP"
	commandFlush  = "FLUSH_MEDIA"
	commandMark   = "MARK_MEDIA"
)

// asteriskEvent is a control message from Asterisk.
type asteriskEvent struct {
	Event         string            `json:"event"`
	ChannelID     string            `json:"channel_id"`
	Format        string            `json:"format"`
	Digit         string            `json:"digit"`
	CorrelationID string            `json:"correlation_id"`
	Variables     map[string]string `json:"channel_variables"`
}

// maxControlBytes is the largest control message in bytes: MEDIA_START in JSON has all of a channel's variables.
const maxControlBytes = 256 << 10

// parseAsteriskEvent parses a control message; false if it is none.
func parseAsteriskEvent(raw []byte) (e asteriskEvent, isJSON, ok bool) {
	if len(raw) > maxControlBytes || !utf8.Valid(raw) {
		return e, false, false
	}
	if len(raw) > 0 && raw[0] == '{' {
		ok = json.Unmarshal(raw, &e) == nil && e.Event != ""
		return e, true, ok
	}

	words := strings.Fields(string(raw))
	if len(words) == 0 {
		return e, false, false
	}

	e.Event = words[0]
	for _, word := range words[1:] {
		name, value, isPair := strings.Cut(word, ":")
		switch {
		case !isPair || e.Event == mediaMarkProcessed:
			e.CorrelationID = word
		case name == "channel_id":
			e.ChannelID = value
		case name == "format":
			e.Format = value
		case name == "digit":
			e.Digit = value
		}
	}

	return e, false, true
}

// asteriskFormat returns the format with Asterisk's name.
func asteriskFormat(name string) (audio.Format, error) {
	switch name {
	case "ulaw":
		return audio.Format{Encoding: audio.ULaw, Rate: 8000}, nil
	case "alaw":
		return audio.Format{Encoding: audio.ALaw, Rate: 8000}, nil
	}

	rate, known := slinRates[name]
	if !known {
		return audio.Format{},
			errors.New("the format must be ulaw, alaw, slin, slin12, slin16, slin24, slin32 or slin48: use c(slin16)")
	}

	return audio.Format{Encoding: audio.PCM16, Rate: rate}, nil
}

// slinRates has the rates in Hz of Asterisk's formats with 16-bit samples; 44.1 kHz and above 48 are not supported.
var slinRates = map[string]int{"slin": 8000, "slin12": 12000, "slin16": 16000, "slin24": 24000, "slin32": 32000,
	"slin48": 48000}
