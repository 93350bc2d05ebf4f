package aiprotocol

import (
	"strings"
	"time"
)

// Event is the name of a message's event.
type Event string

// The basic events.
const (
	EventStart  Event = "start"  // to the provider, once, first
	EventMedia  Event = "media"  // both ways
	EventDTMF   Event = "dtmf"   // to the provider; from the provider: play the tone (extension)
	EventHangup Event = "hangup" // to the provider, last; from the provider: end the call (extension)
)

// Extension events, for a provider that opted in.
const (
	// from the provider: report when the audio so far has been played; to it: the report
	EventMark     Event = "mark"
	EventClear    Event = "clear"    // from the provider: drop the audio that has not been played
	EventCleared  Event = "cleared"  // to the provider: the audio was dropped
	EventTransfer Event = "transfer" // from the provider: transfer the call; to it: the transfer failed
	EventError    Event = "error"    // to the provider: its request failed
)

// EventTranscript is from a provider that listens: a part of what one voice has said.
const EventTranscript Event = "transcript"

// Events that only dialects have (package dialect).
const (
	EventFunction    Event = "function" // from the provider: a call of a function that Trunkline does not have
	EventVendorError Event = "problem"  // from the provider: it reports an error; not a Problem, which is ours
)

// Common reasons of a hangup. Other reasons are allowed.
const (
	NormalClearing   = "NORMAL_CLEARING"
	UserBusy         = "USER_BUSY"
	NoAnswer         = "NO_ANSWER"
	CallRejected     = "CALL_REJECTED"
	OriginatorCancel = "ORIGINATOR_CANCEL"
)

// Message is a decoded message. Fields that its event does not have are zero.
type Message struct {
	Event       Event
	Start       Start
	Audio       []byte // of media; valid until the next message is decoded
	Track       Track  // of media to a provider that listens
	Transcript  Transcript
	DTMF        DTMF
	Hangup      Hangup
	Mark        Mark
	Cleared     Cleared
	Destination string // of transfer
	Refusal     string // of a failed transfer, of an error of ours or the vendor's: the reason
	Refused     Event  // of an error: the request that failed

	// AfterAudio of a hangup or transfer means that the audio before it is played first. Only dialects
	// have it.
	AfterAudio bool
}

// Call has the ids of a call's two legs.
type Call struct {
	CallID         string
	OtherLegCallID string // "" when there is no other leg
}

// Start describes the call to the provider.
type Start struct {
	Call
	CallerIDNumber string // E.164 if the party has such a number
	CalleeIDNumber string
	AccountID      string
	Media          Format

	// Only dialects send the following.
	SessionID  string            // the same for all connections of a session
	Parameters map[string]string // X-* headers of a SIP call
}

// DTMF is one key press. A provider's request has no Call.
type DTMF struct {
	Call
	Digit    string        // one of Digits
	Duration time.Duration // whole milliseconds in JSON; 0 means unknown and is omitted
}

// Hangup is the end of the call. A provider's request has no Call.
type Hangup struct {
	Call
	Reason string // omitted if ""
}

// Track is one voice of a call that a provider listens to.
type Track string

// The tracks; the audio of a call that a provider answers has none.
const (
	NoTrack     Track = ""
	TrackCaller Track = "caller"
	TrackCallee Track = "callee"
)

// Transcript is a part of what one voice of a call has said. Never log its text.
type Transcript struct {
	Text       string
	Final      bool // a later one does not replace it
	Track      Track
	Start, End time.Duration // since the session's first audio
}

// Mark is a position in the provider's audio. A provider's request has only the name.
type Mark struct {
	Name   string
	Played time.Duration // duration of provider audio played since the start of the provider's connection
}

// Cleared is the result of a clear.
type Cleared struct {
	Played  time.Duration // since the start of the provider's connection
	Dropped time.Duration // by this clear
}

// Digits has all keys.
const Digits = "0123456789*#ABCD"

// IsDigit reports whether digit is one key.
func IsDigit(digit string) bool { return len(digit) == 1 && strings.Contains(Digits, digit) }
