package asterisk

import (
	"strconv"

	"trunkline/origination"
)

// q850 has FreeSWITCH's names of Q.850 causes, as in hangup_cause. It omits unspecific causes (0, 16,
// 26, 31, 127), because other events of the call have a more specific one.
var q850 = map[int]string{
	1: "UNALLOCATED_NUMBER", 2: "NO_ROUTE_TRANSIT_NET", 3: "NO_ROUTE_DESTINATION", 17: "USER_BUSY", 18: "NO_USER_RESPONSE",
	19: "NO_ANSWER", 20: "SUBSCRIBER_ABSENT", 21: "CALL_REJECTED", 22: "NUMBER_CHANGED", 27: "DESTINATION_OUT_OF_ORDER",
	28: "INVALID_NUMBER_FORMAT", 29: "FACILITY_REJECTED", 34: "NORMAL_CIRCUIT_CONGESTION", 38: "NETWORK_OUT_OF_ORDER",
	41: "NORMAL_TEMPORARY_FAILURE", 42: "SWITCH_CONGESTION", 44: "REQUESTED_CHAN_UNAVAIL", 50: "FACILITY_NOT_SUBSCRIBED",
	52: "OUTGOING_CALL_BARRED", 54: "INCOMING_CALL_BARRED", 57: "BEARERCAPABILITY_NOTAUTH", 58: "BEARERCAPABILITY_NOTAVAIL",
	65: "BEARERCAPABILITY_NOTIMPL", 66: "CHAN_NOT_IMPLEMENTED", 69: "FACILITY_NOT_IMPLEMENTED", 81: "INVALID_CALL_REFERENCE",
	88: "INCOMPATIBLE_DESTINATION", 102: "RECOVERY_ON_TIMER_EXPIRE",
}

const causeNormal = "NORMAL_CLEARING"

// causeOf returns the name of a Cause, or "" for an unspecific one.
func causeOf(text string) string {
	number, err := strconv.Atoi(text)
	if err != nil {
		return ""
	}
	return q850[number]
}

// reasons maps the Reason of an OriginateResponse, which is the number of a control frame, to a cause.
// 0 is any other failure, usually of a phone that is unknown or not registered.
var reasons = map[string]string{
	"0": origination.CauseAbsent, "1": origination.CauseCancelled, "3": "NO_ANSWER", "5": "USER_BUSY", "8": "NORMAL_CIRCUIT_CONGESTION",
}

// dialStatuses maps the DialStatus of a destination that was not reached to a cause. Dial reports
// CHANUNAVAIL for an extension that does not exist.
var dialStatuses = map[string]string{
	"BUSY": "USER_BUSY", "NOANSWER": "NO_ANSWER", "CANCEL": origination.CauseCancelled,
	"CONGESTION": "NORMAL_CIRCUIT_CONGESTION", "CHANUNAVAIL": "UNALLOCATED_NUMBER",
}
