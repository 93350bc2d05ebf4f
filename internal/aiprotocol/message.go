package aiprotocol

import (
	"strings"
	"time"
)

// Event names a message.
type Event string

// The specification's events.
const (
	EventStart  Event = "start"  // to the provider, once, first
	EventMedia  Event = "media"  // both ways
	EventDTMF   Event = "dtmf"   // to the provider; from it: play the tone (extra)
	EventHangup Event = "hangup" // to the provider, last; from it: end the call (extra)
)

// Extras, for a provider that opted in.
const (
	EventMark     Event = "mark"     // from the provider: tell me when this is played; to it: it is
	EventClear    Event = "clear"    // from the provider: forget what is not played yet
	EventCleared  Event = "cleared"  // to the provider: it is forgotten
	EventTransfer Event = "transfer" // from the provider: hand the call on; to it: that failed
)

// Reasons of a hangup that the specification calls common. Others are allowed.
const (
	NormalClearing   = "NORMAL_CLEARING"
	UserBusy         = "USER_BUSY"
	NoAnswer         = "NO_ANSWER"
	CallRejected     = "CALL_REJECTED"
	OriginatorCancel = "ORIGINATOR_CANCEL"
)

// Message is one message, read. What its event does not carry is zero.
type Message struct {
	Event       Event
	Start       Start
	Audio       []byte // of media; the decoder's memory, until it reads the next
	DTMF        DTMF
	Hangup      Hangup
	Mark        Mark
	Cleared     Cleared
	Destination string // of transfer
	Refusal     string // of a transfer: why it failed
}

// Call names the two legs of a call.
type Call struct {
	CallID         string
	OtherLegCallID string // "" when there is no other leg
}

// Start tells the provider what call it is about.
type Start struct {
	Call
	CallerIDNumber string // E.164 where the party has such a number
	CalleeIDNumber string
	AccountID      string
	Media          Format
}

// DTMF is one key press. A provider's request has no Call.
type DTMF struct {
	Call
	Digit    string        // one of Digits
	Duration time.Duration // whole milliseconds on the wire; 0: unknown, left out
}

// Hangup is the end of the call. A provider's request has no Call.
type Hangup struct {
	Call
	Reason string // "": left out
}

// Mark is a place in the provider's audio. A provider's request has a name only.
type Mark struct {
	Name   string
	Played time.Duration // of the provider's audio since the session's start
}

// Cleared says what became of the provider's audio at its clear.
type Cleared struct {
	Played  time.Duration // since the session's start
	Dropped time.Duration // by this clear
}

// Digits are the keys there are.
const Digits = "0123456789*#ABCD"

// IsDigit reports whether digit is one key.
func IsDigit(digit string) bool { return len(digit) == 1 && strings.Contains(Digits, digit) }
