package asterisk

import (
	"testing"

	"trunkline/origination/drivertest"
)

const (
	ringing   = drivertest.Ringing
	answered  = drivertest.Answered
	dialling  = drivertest.Dialling
	joined    = drivertest.Bridged
	ended     = drivertest.Ended
	ownerLeg  = capturedCall + ownerSuffix
	remoteLeg = "1795348574.91"
)

// event returns an event with keys and values in turn.
func event(name string, fields ...string) amiMessage {
	p := amiMessage{{"Event", name}, {"Privilege", "call,all"}}
	for i := 0; i < len(fields); i += 2 {
		p = append(p, line{fields[i], fields[i+1]})
	}
	return p
}

func ofOwner(name string, fields ...string) amiMessage {
	return event(name, append([]string{"Uniqueid", ownerLeg, "Linkedid", ownerLeg}, fields...)...)
}

func ofRemote(name string, fields ...string) amiMessage {
	return event(name, append([]string{"Uniqueid", remoteLeg, "Linkedid", ownerLeg}, fields...)...)
}

func response(result, reason string) amiMessage {
	return amiMessage{{"Event", "OriginateResponse"}, {"Privilege", "call,all"}, {"ActionID", capturedAction},
		{"Response", result},
		{"Reason", reason}, {"Uniqueid", ownerLeg}}
}

// ownerRings is the beginning of a call whose owner has a phone.
func ownerRings() []amiMessage {
	return []amiMessage{
		ofOwner("Newchannel", "ChannelState", "0"),
		event("DialBegin", "DestUniqueid", ownerLeg, "DestLinkedid", ownerLeg),
		ofOwner("Newstate", "ChannelState", "5"),
		event("DialState", "DestUniqueid", ownerLeg, "DestLinkedid", ownerLeg, "DialStatus", "RINGING"),
	}
}

// ownerAnswers is the beginning of a call whose owner answers.
func ownerAnswers() []amiMessage {
	return append(ownerRings(),
		ofOwner("Newstate", "ChannelState", "6"),
		event("DialEnd", "DestUniqueid", ownerLeg, "DestLinkedid", ownerLeg, "DialStatus", "ANSWER"),
		response("Success", "4"))
}

// remoteRings is a call until its destination rings.
func remoteRings() []amiMessage {
	return append(ownerAnswers(), ofRemote("Newchannel", "ChannelState", "0"),
		ofOwner("DialBegin", "ChannelState", "6", "DestUniqueid", remoteLeg, "DestLinkedid", ownerLeg))
}

// remoteFails is a call whose destination is not reached, with the owner's cause.
func remoteFails(status, cause string) []amiMessage {
	end := ofOwner("DialEnd", "DestUniqueid", remoteLeg, "DialStatus", status)
	return append(remoteRings(), end, end, // it may come twice
		ofRemote("Hangup", "ChannelState", "0", "Cause", cause), ofOwner("Hangup", "ChannelState", "6", "Cause", cause))
}

// scriptedCalls are the scripts of calls, by the number that is dialled for each, with what must be reported
// when every event comes. talk was captured; the others are what Asterisk's sources send.
func scriptedCalls(t *testing.T) map[string]struct {
	script []amiMessage
	want   []string
} {
	return map[string]struct {
		script []amiMessage
		want   []string
	}{
		"2001": {loadCaptured(t, "talk.ami.txt"),
			[]string{ringing, answered, dialling, joined, ended, "NORMAL_CLEARING"}},
		"2004": {remoteFails("BUSY", "17"), []string{ringing, answered, dialling, ended, "USER_BUSY"}},
		"2005": {remoteFails("NOANSWER", "16"), []string{ringing, answered, dialling, ended, "NO_ANSWER"}},
		"2006": {remoteFails("NOANSWER", "21"), []string{ringing, answered, dialling, ended, "CALL_REJECTED"}},
		"2007": {remoteFails("CHANUNAVAIL", "20"), []string{ringing, answered, dialling, ended, "SUBSCRIBER_ABSENT"}},
		"2010": {remoteFails("CHANUNAVAIL", "3"), []string{ringing, answered, dialling, ended, "SUBSCRIBER_ABSENT"}},
		"2011": {remoteFails("CHANUNAVAIL", "1"), []string{ringing, answered, dialling, ended, "UNALLOCATED_NUMBER"}},
		"2008": {remoteFails("CONGESTION", "0"),
			[]string{ringing, answered, dialling, ended, "NORMAL_CIRCUIT_CONGESTION"}},
		"2009": {remoteFails("CANCEL", "16"), []string{ringing, answered, dialling, ended, "ORIGINATOR_CANCEL"}},
		"unknown": {append(ownerAnswers(), ofRemote("Newchannel", "ChannelState", "0"),
			ofRemote("Hangup", "ChannelState", "0", "Cause", "0"),
			ofOwner("Hangup", "ChannelState", "6", "Cause", "16")),
			[]string{ringing, answered, dialling, ended, "UNALLOCATED_NUMBER"}},
		"hangs-up-early": {append(ownerAnswers(), ofOwner("Hangup", "ChannelState", "6", "Cause", "16")),
			[]string{ringing, answered, ended, "NORMAL_CLEARING"}},
		"owner-busy": {append(ownerRings(), ofOwner("Hangup", "ChannelState", "5", "Cause", "17"),
			response("Failure", "5")), []string{ringing, ended, "USER_BUSY"}},
		"owner-rejects": {append(ownerRings(), response("Failure", "8"),
			ofOwner("Hangup", "ChannelState", "5", "Cause", "21")), []string{ringing, ended, "CALL_REJECTED"}},
		"owner-no-answer": {append(ownerRings(), response("Failure", "3"),
			ofOwner("Hangup", "ChannelState", "5", "Cause", "0")), []string{ringing, ended, "NO_ANSWER"}},
		"owner-absent": {[]amiMessage{response("Failure", "0")}, []string{ended, "SUBSCRIBER_ABSENT"}},
		"strange-responses": {append(append(ownerAnswers(), strangers()...),
			ofOwner("Hangup", "ChannelState", "6", "Cause", "16")),
			[]string{ringing, answered, ended, "NORMAL_CLEARING"}},
	}
}

// strangers are responses to the Originate of another client, which name our living channel because it
// asked for the same id, and events of channels whose ids look like ours.
func strangers() []amiMessage {
	failure := response("Failure", "0")
	failure[2].value = "someone-else"
	nobody := response("Failure", "0")
	nobody[2].value = "nobody" + originateSuffix
	return []amiMessage{failure, nobody,
		event("Hangup", "Uniqueid", "x"+ownerLeg, "Linkedid", "x"+ownerLeg, "Cause", "17"),
		event("Hangup", "Uniqueid", "1.1", "Linkedid", ownerLeg, "Cause", "17"),
		event("Hangup", "Uniqueid", ownerLeg+"-2", "Linkedid", ownerLeg, "Cause", "17"),
		{{"Uniqueid", ownerLeg}, {"Event", "Hangup"}, {"Linkedid", ownerLeg}, {"Cause", "17"}}}
}

func scripts(t *testing.T) map[string][]amiMessage {
	all := make(map[string][]amiMessage)
	for number, c := range scriptedCalls(t) {
		all[number] = c.script
	}
	return all
}
