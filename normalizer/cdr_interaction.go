package normalizer

import "strings"

// Legs of one call share an interaction id, whatever order their records
// arrive in. Nothing is remembered between records, so each leg must find the
// same name for the call in its own record alone:
//
//  1. an id the source gave: interaction_id, or Kazoo's;
//  2. the origination call id of click to call. The loopback and destination
//     legs have it as a variable; the leg that rang the user's phone has it in
//     the dial string with which it called them (last_arg, app_log);
//  3. the uuid of the leg that began the call: for a queue's agent leg the
//     member's session, for a loopback leg and for a leg that another leg dialled
//     that other leg; for every other leg its own uuid.
//
// What one record cannot tell: a leg dialled through a loopback without (1) or
// (2) names the loopback's far side, not the leg before it; a leg of a forked
// originate that lost knows nothing of the call the winner made; and when an
// attended transfer joins two calls, each keeps its own id. A switch that
// exports one interaction_id variable to every leg has none of these gaps.
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
	// call_uuid comes last: of about one B leg in a hundred it is the leg's own
	// (FreeSWITCH issue 1042), and an inbound leg's may be that of a leg it was
	// joined with later.
	names := []string{"cc_member_session_uuid", "loopback_from_uuid", "other_loopback_from_uuid", "originating_leg_uuid", "originator"}
	if l.get("direction") == "outbound" {
		names = append(names, "call_uuid")
	}
	return l.get(append(names, "uuid")...)
}

var originationVariables = []string{"origination_call_id", "sip_origination_call_uuid"}

// originationCallID is the id that click to call answered with. The leg that
// rings the user's own phone must not show it (specification, "CDR row"): where
// its variable was set on that leg too, it is the leg that hands the same id on
// in its dial string.
func (l *leg) originationCallID() string {
	id := l.get(originationVariables...)
	if id != "" && id == l.dialled() && l.get("loopback_leg") == "" {
		return ""
	}
	return id
}

// dialled is the origination call id that this leg handed to the legs it
// dialled, "" when it handed on none.
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
