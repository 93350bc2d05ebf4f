package freeswitch

import "strings"

// Legs of one call share an interaction id, whatever order their records
// arrive in. Nothing is remembered between records, so each leg must find the
// same name for the call in its own record alone:
//
//  1. an id the source gave: interaction_id, or Kazoo's;
//  2. the origination call id of click to call. The loopback and destination
//     legs have it as a variable; the leg that rang the user's phone has it in
//     the dial string with which it called them (last_arg, app_log);
//  3. the uuid of the leg that began the call: of a queue's agent leg the
//     member's session, of a loopback leg the leg that dialled the loopback, of
//     an outbound leg the leg it was last connected to or dialled by (see
//     callerLeg), of every other leg its own.
//
// One record alone cannot tell: a leg dialled through a loopback that did not
// bow out names the loopback's far side, not the leg before it; legs dialled by
// a leg that was itself transferred name that leg; and when an attended
// transfer joins two calls, each keeps its own id. A dialplan that exports
// interaction_id to every leg has none of these gaps (docs/calls.md).
func (l *leg) interactionID() string {
	if id := l.get("interaction_id", "ecallmgr_Call-Interaction-ID", "ecallmgr_Interaction-ID"); id != "" {
		return id
	}
	if id := l.get(originationVariables...); id != "" {
		return id
	}
	if id := l.dialled(); id != "" {
		return id
	}
	if id := l.get("cc_member_session_uuid", "loopback_from_uuid", "other_loopback_from_uuid"); id != "" {
		return id
	}
	if l.get("loopback_leg") == "B" { // of a loopback that no leg dialled
		return l.get("other_loopback_leg_uuid", "uuid")
	}
	if l.get("direction") == "outbound" {
		return l.callerLeg()
	}
	return l.get("uuid")
}

// callerLeg returns the uuid of the leg on whose behalf an outbound leg exists,
// its own when no other is known. After a loopback bowed out this is the leg at
// the other end, while originator still names the loopback. call_uuid comes
// second: a hangup of the other leg resets it to the leg's own uuid (FreeSWITCH
// issue 1042).
func (l *leg) callerLeg() string {
	own := l.get("uuid")
	for _, id := range [...]string{
		l.originator(), l.get("call_uuid"), l.get("originating_leg_uuid"), l.get("originator"),
	} {
		if id != "" && id != own {
			return id
		}
	}
	return own
}

var originationVariables = []string{"origination_call_id", "sip_origination_call_uuid"}

// originationCallID returns the id that the click-to-call request returned. The
// leg that rings the user's own phone must not have it (specification, "CDR
// row"); where the variable was set on that leg too, the leg is known by passing
// the same id on in its dial string.
func (l *leg) originationCallID() string {
	id := l.get(originationVariables...)
	if id != "" && id == l.dialled() && l.get("loopback_leg") == "" {
		return ""
	}
	return id
}

// dialled returns the origination call id that this leg passed on to the legs it
// dialled, "" when it passed on none.
func (l *leg) dialled() string {
	for _, text := range [...]string{l.get("last_arg"), string(l.appLog)} {
		for _, name := range originationVariables {
			_, rest, ok := strings.Cut(text, name+"=")
			if !ok {
				continue
			}
			if end := strings.IndexAny(rest, ",}]\"\\' "); end >= 0 {
				rest = rest[:end]
			}
			if rest != "" {
				return rest
			}
		}
	}
	return ""
}
