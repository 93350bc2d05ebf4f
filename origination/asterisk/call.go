package asterisk

import (
	"cmp"

	"trunkline/origination"
	"trunkline/origination/eventdriver"
)

// call is the state of one open call.
type call struct {
	eventdriver.Call
	created    bool   // the owner's channel has been seen
	answered   bool   // the owner has answered
	ownerGone  bool   // the owner's channel has ended
	failed     string // cause by OriginateResponse; "" while it has not failed
	hangup     string // cause of the owner's channel; "" if it says nothing
	tried      bool   // channels to the destination have been seen
	dialStatus string // of the destination; "" while it is being dialled
	reached    bool   // the destination has answered
}

// Over implements eventdriver.Tracked. A call whose owner has not answered ends with its
// OriginateResponse; a channel that was created is waited for, because its Hangup, which may come after
// the response, has the better cause.
func (c *call) Over() bool {
	return c.ownerGone && (c.answered || c.failed != "") || c.failed != "" && !c.created
}

// Cause implements eventdriver.Tracked.
func (c *call) Cause() string {
	switch {
	case c.Cancelled:
		return origination.CauseCancelled
	case !c.ownerGone && c.failed == "": // found to be gone
		return cmp.Or(dialStatuses[c.dialStatus], origination.CauseLost)
	case c.reached:
		return cmp.Or(c.hangup, causeNormal)
	case c.answered && c.dialStatus == "CANCEL": // the owner hung up
		return origination.CauseCancelled
	case c.answered:
		return cmp.Or(c.hangup, dialStatuses[c.dialStatus], c.undialled())
	}
	return cmp.Or(c.hangup, c.failed, origination.CauseLost)
}

// undialled returns the cause of a call whose owner has answered and whose Dial said nothing of the
// destination. Dial sends no event of a channel that it could not call, which is the case of a Local
// channel to an extension that does not exist.
func (c *call) undialled() string {
	if c.tried {
		return "UNALLOCATED_NUMBER"
	}
	return causeNormal
}

// Channels implements eventdriver.Tracked.
func (c *call) Channels() []string { return []string{ownerChannel(c.ID)} }
