package asterisk

import (
	"cmp"

	"trunkline/origination"
	"trunkline/origination/eventdriver"
)

// call is what events and comparisons have told of one open call.
type call struct {
	eventdriver.Call
	ownerSeen              bool   // the owner's channel has been seen
	ownerAnswered          bool   // the owner has answered
	ownerGone              bool   // the owner's channel has ended
	failureCause           string // cause by OriginateResponse; "" while it has not failed
	ownerHangupCause       string // cause of the owner's channel; "" if it is unspecific
	destinationChannelSeen bool   // channels to the destination have been seen
	dialStatus             string // of the destination; "" while it is being dialled
	destinationAnswered    bool   // the destination has answered
}

// HasEnded implements eventdriver.TrackedCall. A call whose owner has not answered ends with its
// OriginateResponse and, if the owner's channel was created, its Hangup, which may follow the response
// and has the more specific cause.
func (c *call) HasEnded() bool {
	return c.ownerGone && (c.ownerAnswered || c.failureCause != "") || c.failureCause != "" && !c.ownerSeen
}

// Cause implements eventdriver.TrackedCall.
func (c *call) Cause() string {
	switch {
	case c.Cancelled:
		return origination.CauseCancelled
	case !c.ownerGone && c.failureCause == "": // a comparison found no channel
		return cmp.Or(causesByDialStatus[c.dialStatus], origination.CauseLost)
	case c.destinationAnswered:
		return cmp.Or(c.ownerHangupCause, causeNormal)
	case c.ownerAnswered && c.dialStatus == "CANCEL": // the owner hung up
		return origination.CauseCancelled

	// the extension dialled a phone without a contact
	case c.ownerAnswered && c.dialStatus == "CHANUNAVAIL" && c.ownerHangupCause == causeNoRoute:
		return origination.CauseAbsent
	case c.ownerAnswered:
		return cmp.Or(c.ownerHangupCause, causesByDialStatus[c.dialStatus], c.causeWithoutDialStatus())
	}

	return cmp.Or(c.ownerHangupCause, c.failureCause, origination.CauseLost)
}

// causeWithoutDialStatus returns the cause of a call whose owner has answered and whose Dial has told no DialStatus.
// A channel of the destination may have been seen all the same: Dial sends no event of one that it could not call,
// such as a Local channel to an extension that does not exist.
func (c *call) causeWithoutDialStatus() string {
	if c.destinationChannelSeen {
		return "UNALLOCATED_NUMBER"
	}
	return causeNormal
}

// Channels implements eventdriver.TrackedCall.
func (c *call) Channels() []string { return []string{ownerChannel(c.ID)} }
