package pcmsocket

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
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

// asteriskQueue has the state of a connection of chan_websocket: whether Asterisk's queue of audio is full, and what
// waits until Asterisk reports that the queue has been played.
type asteriskQueue struct {
	json bool // control messages are JSON

	mu        sync.Mutex
	queueFull bool // Asterisk's queue is full
	lastMark  int64
	marks     []asteriskMark // wait for MEDIA_MARK_PROCESSED, in order
}

// asteriskMark is a mark in Asterisk's queue; its number is the correlation_id. done is called when it is played.
type asteriskMark struct {
	number int64
	done   func()
}

// command returns a command as the dialplan wants it.
func (a *asteriskQueue) command(name string) []byte {
	if !a.json {
		return []byte(name)
	}
	return []byte(`{"command":"` + name + `"}`)
}

// markCommand returns the command that puts a mark behind the audio so far.
func (a *asteriskQueue) markCommand(number int64) []byte {
	if !a.json {
		return fmt.Appendf(nil, "%s %d", commandMark, number)
	}
	return fmt.Appendf(nil, `{"command":"%s","correlation_id":"%d"}`, commandMark, number)
}

// setQueueFull pauses or resumes audio.
func (a *asteriskQueue) setQueueFull(off bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queueFull = off
}

func (a *asteriskQueue) isQueueFull() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.queueFull
}

// addMark stores a mark and returns its number.
func (a *asteriskQueue) addMark(done func()) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lastMark++
	a.marks = append(a.marks, asteriskMark{a.lastMark, done})
	return a.lastMark
}

// takePlayedMarks removes and returns the mark that Asterisk names, and those before it: it plays them in order. A
// mark that is not there was reported when the queue was flushed, and Asterisk's report crossed the command.
func (a *asteriskQueue) takePlayedMarks(correlationID string) []asteriskMark {
	number, err := strconv.ParseInt(correlationID, 10, 64)
	if err != nil {
		return nil
	}

	a.mu.Lock()
	defer a.mu.Unlock()
	n := slices.IndexFunc(a.marks, func(m asteriskMark) bool { return m.number == number }) + 1
	played := a.marks[:n:n]
	a.marks = a.marks[n:]
	return played
}

// takeAllMarks removes and returns all marks.
func (a *asteriskQueue) takeAllMarks() []asteriskMark {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.marks
	a.marks = nil
	return all
}
