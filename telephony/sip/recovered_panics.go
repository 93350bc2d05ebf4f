package sip

import "errors"

// Places of recovered panics, as in the metric of them.
const (
	placeDatagram = "sip_datagram" // the stack, on the goroutine that reads UDP
	placeParse    = "sip_parse"    // the parser
	placeRequest  = "sip_request"  // the handler of a request
	placeCall     = "sip_call"     // a goroutine of one call
	placeSDP      = "sdp"          // the parser of session descriptions
)

// errPanicked is the error of a function that panicked.
var errPanicked = errors.New("sip: internal error")

// parseSDPSafely is ParseSDP. A panic of the parser is an error.
func (t *transports) parseSDPSafely(body []byte) (description *SDP, err error) {
	err = errPanicked
	t.panics.Do(placeSDP, func() { description, err = ParseSDP(body) })
	return description, err
}
