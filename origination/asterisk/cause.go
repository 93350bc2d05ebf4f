package asterisk

import (
	"strconv"

	"trunkline/origination"
	"trunkline/telephony/sip"
)

const causeNormal = "NORMAL_CLEARING"

// causeOf returns the name of a Cause, or "" for an unspecific one: other events of the call have a more
// specific one.
func causeOf(text string) string {
	number, err := strconv.Atoi(text)
	if err != nil {
		return ""
	}

	switch cause, _ := sip.CauseOfQ850(number); cause {
	case sip.NormalClearing, sip.Interworking, "NORMAL_UNSPECIFIED":
		return ""
	default:
		return string(cause)
	}
}

// causeNoRoute is the cause with which a PJSIP endpoint that has no contact cannot be called.
const causeNoRoute = "NO_ROUTE_DESTINATION"

// causesByReason maps the Reason of an OriginateResponse, which is the number of a control frame, to a cause.
// 0 is any other failure, usually of a phone that is unknown or not registered.
var causesByReason = map[string]string{
	"0": origination.CauseAbsent, "1": origination.CauseCancelled, "3": "NO_ANSWER", "5": "USER_BUSY",
	"8": "NORMAL_CIRCUIT_CONGESTION",
}

// causesByDialStatus maps the DialStatus of a destination that was not reached to a cause. Dial reports
// CHANUNAVAIL for an extension that does not exist.
var causesByDialStatus = map[string]string{
	"BUSY": "USER_BUSY", "NOANSWER": "NO_ANSWER", "CANCEL": origination.CauseCancelled,
	"CONGESTION": "NORMAL_CIRCUIT_CONGESTION", "CHANUNAVAIL": "UNALLOCATED_NUMBER",
}
