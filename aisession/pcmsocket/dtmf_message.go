package pcmsocket

import (
	"encoding/json"
	"time"

	"trunkline/internal/aiprotocol"
)

// dtmfMessage is a digit of the caller, sent as a text frame.
type dtmfMessage struct {
	Event string `json:"event"`
	DTMF  struct {
		Digit    string  `json:"digit"`
		Duration float64 `json:"duration"` // ms
	} `json:"dtmf"`
}

const maxDTMFDuration = time.Minute

// parseDTMF parses a text frame. It returns false if the frame is not a DTMF message.
func parseDTMF(raw []byte) (digit byte, duration time.Duration, ok bool) {
	var d dtmfMessage
	if len(raw) > maxFirstMessageBytes || json.Unmarshal(raw, &d) != nil || d.Event != "dtmf" ||
		!aiprotocol.IsDigit(d.DTMF.Digit) {
		return 0, 0, false
	}
	ms := min(max(d.DTMF.Duration, 0), float64(maxDTMFDuration.Milliseconds()))
	return d.DTMF.Digit[0], time.Duration(ms) * time.Millisecond, true
}
