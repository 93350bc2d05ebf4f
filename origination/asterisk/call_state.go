package asterisk

import (
	"cmp"

	"trunkline/origination"
	"trunkline/origination/eventdriver"
)

// call is the state of one open call.
type call struct {
	eventdriver.Call
	created             bool   // the owner's channel has been seen
	answered            bool   // the owner has answered
	ownerGone           bool   // the owner's channel has ended
	failureCause        string // cause by OriginateResponse; "" while it has not failed
	hangup              string // cause of the owner's channel; "" if it is unspecific
	destinationDialled  bool   // channels to the destination have been seen
	dialStatus          string // of the destination; "" while it is being dialled
	destinationAnswered bool   // the destination has answered
}

// HasEnded implements eventdriver.TrackedCall. A call whose owner has not answered ends with its
// OriginateResponse and, if the owner's channel was created, its Hangup, which may follow the response
// and has the more specific cause.
func (c *call) HasEnded() bool {
	return c.ownerGone && (c.answered || c.failureCause != "") || c.failureCause != "" && !c.created
}

// Cause implements eventdriver.TrackedCall.
func (c *call) Cause() string {
	switch {
	case c.Cancelled:
		return origination.CauseCancelled
	case !c.ownerGone && c.failureCause == "": // a comparison found no channel
		return cmp.Or(dialStatuses[c.dialStatus], origination.CauseLost)
	case c.destinationAnswered:
		return cmp.Or(c.hangup, causeNormal)
	case c.answered && c.dialStatus == "CANCEL": // the owner hung up
		return origination.CauseCancelled

	// the extension dialled a phone without a contact
	case c.answered && c.dialStatus == "CHANUNAVAIL" && c.hangup == causeNoRoute:
		return origination.CauseAbsent
	case c.answered:
		return cmp.Or(c.hangup, dialStatuses[c.dialStatus], c.undialled())
	}

	return cmp.Or(c.hangup, c.failureCause, origination.CauseLost)
}

// undialled returns the cause of a call whose owner has answered and whose Dial sent no event of the
// destination. Dial sends no event of a channel that it could not call, such as a Local channel to an
// extension that does not exist.
func (c *call) undialled() string {
	if c.destinationDialled {
		return "UNALLOCATED_NUMBER"
	}
	return causeNormal
}

// Channels implements eventdriver.TrackedCall.
func (c *call) Channels() []string { return []string{ownerChannel(c.ID)} }
