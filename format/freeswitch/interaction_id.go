package freeswitch

import "strings"

// interactionID returns the id that all legs of a call share, in whatever order their
// records arrive. No state is kept between records, so it must follow from each leg's
// own record:
//
//  1. an id given by the source: interaction_id, or Kazoo's;
//  2. the origination call id of click to call. The loopback and destination legs have
//     it as a variable; the leg that rang the user's phone has it in the dial string
//     with which it called them (last_arg, app_log);
//  3. the uuid of the leg that began the call: for a queue's agent leg the member's
//     session, for a loopback leg the leg that dialled the loopback, for an outbound leg
//     the leg to which it was last connected or that dialled it (see legIDs.callers),
//     for every other leg its own.
//
// Limits of single records: a leg dialled through a loopback that did not bow out names
// the loopback's far side, not the leg before it; legs dialled by a leg that was itself
// transferred name that leg; and when an attended transfer joins two calls, each keeps
// its own id. A dialplan that exports interaction_id to every leg has none of these
// limits (docs/calls.md).
func (l *leg) interactionID() string {
	ids := &legIDs{
		sourceInteraction: l.text("interaction_id", "ecallmgr_Call-Interaction-ID", "ecallmgr_Interaction-ID"),
		origination:       l.text(originationVariables...),
		firstLeg:          l.text("cc_member_session_uuid", "loopback_from_uuid", "other_loopback_from_uuid"),
		otherSide:         l.text("other_loopback_leg_uuid"),
		loopback:          l.text("loopback_leg"),
		direction:         l.text("direction"),
		ownUUID:           l.text("uuid"),
		callers: [4]string{l.originator(), l.text("call_uuid"), l.text("originating_leg_uuid"),
			l.text("originator")},
	}
	if ids.origination == "" {
		ids.origination = l.passedOnCallID()
	}

	return ids.interactionID()
}

// legIDs holds the ids in one leg's record or event that identify its call.
type legIDs struct {
	sourceInteraction string // an id of the call given by the source
	origination       string // the origination call id, of the leg itself or passed on by it
	firstLeg          string // the leg that began the call, if a variable names it
	otherSide         string // of the loopback whose far side this leg is
	loopback          string // "A" or "B" for the sides of a loopback
	direction         string
	ownUUID           string
	// callers are legs that may have dialled this one, most certain first. After a
	// loopback has bowed out, the first is the leg at the other end, while the last
	// still is the loopback. call_uuid is second: a hangup of the other leg resets it
	// to the leg's own uuid (FreeSWITCH issue 1042).
	callers [4]string
}

// explicitID returns the first of the ids that the source gave, "" if it gave none.
func (l *legIDs) explicitID() string {
	for _, id := range [...]string{l.sourceInteraction, l.origination, l.firstLeg} {
		if id != "" {
			return id
		}
	}
	return ""
}

// interactionID returns the id that all legs of the call share, see leg.interactionID.
func (l *legIDs) interactionID() string {
	id := l.explicitID()
	if id != "" {
		return id
	}
	if l.loopback == "B" && l.otherSide != "" { // of a loopback that no leg dialled
		return l.otherSide
	}

	if l.loopback != "B" && l.direction == "outbound" {
		for _, id := range l.callers {
			if id != "" && id != l.ownUUID {
				return id
			}
		}
	}

	return l.ownUUID
}

var originationVariables = []string{"origination_call_id", "sip_origination_call_uuid"}

// originationCallID returns the id that the click-to-call request returned. The leg
// that rings the user's own phone must not have it (docs/calls.md); if the
// variable was set on that leg too, the leg is identified by the same id in its dial
// string.
func (l *leg) originationCallID() string {
	id := l.text(originationVariables...)
	if id != "" && id == l.passedOnCallID() && l.text("loopback_leg") == "" {
		return ""
	}
	return id
}

// passedOnCallID returns the origination call id that this leg passed on to the legs it
// dialled, "" if none.
func (l *leg) passedOnCallID() string {
	id := callIDInDialString(l.text("last_arg"))
	if id != "" {
		return id
	}
	return callIDInDialString(string(l.appLog))
}

// callIDInDialString returns the origination call id in a dial string.
func callIDInDialString(text string) string {
	for _, name := range originationVariables {
		_, rest, ok := strings.Cut(text, name+"=")
		if !ok {
			continue
		}

		end := strings.IndexAny(rest, ",}]\"\\' ")
		if end >= 0 {
			rest = rest[:end]
		}
		if rest != "" {
			return rest
		}
	}

	return ""
}
