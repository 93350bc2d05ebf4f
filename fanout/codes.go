package fanout

import (
	"encoding/binary"
	"slices"
	"strconv"
	"time"
)

// Close codes of the channel, contract section C.
const (
	codeNormal    = 1000 // the peer asked to close
	codeGoingAway = 1001 // the peer was silent
	codeAbnormal  = 1006 // the connection broke; never sent
	codeMisuse    = 1008 // the peer sent what it should not
	codeFault     = 1011
	codeRestart   = 1012 // come back at once
	codeExpired   = 4001
	codeRevoked   = 4003
	codeTooSlow   = 4008
	codeReplaced  = 4009
)

// farewellWait is how long a farewell is tried on a full socket; lastDrain is
// how long input is read after it went out, so that a reset does not destroy
// it on its way.
const (
	farewellWait = 5 * time.Second
	lastDrain    = time.Second
)

var ownCodes = [...]int{codeNormal, codeGoingAway, codeAbnormal, codeMisuse, codeFault, codeRestart,
	codeExpired, codeRevoked, codeTooSlow, codeReplaced}

// codeLabel is the metric label of a code: a peer may close with any.
func codeLabel(code int) string {
	if !slices.Contains(ownCodes[:], code) {
		return "other"
	}
	return strconv.Itoa(code)
}

// maxReason is what a close frame has room for beside its code.
const maxReason = 123

func closeFrame(code int, reason string) *frame {
	if len(reason) > maxReason {
		reason = reason[:maxReason]
	}
	payload := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(reason)), uint16(code))
	return controlFrame(opClose, append(payload, reason...))
}
