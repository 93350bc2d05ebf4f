package sip

import (
	"fmt"
	"regexp"
	"strconv"
)

// Cause is the reason a call ended: a cause of ITU-T Q.850 under FreeSWITCH's name for it, as in
// hangup_cause.
type Cause string

// The causes in use.
const (
	UnallocatedNumber       Cause = "UNALLOCATED_NUMBER"
	NormalClearing          Cause = "NORMAL_CLEARING"
	UserBusy                Cause = "USER_BUSY"
	NoUserResponse          Cause = "NO_USER_RESPONSE"
	NoAnswer                Cause = "NO_ANSWER"
	SubscriberAbsent        Cause = "SUBSCRIBER_ABSENT"
	CallRejected            Cause = "CALL_REJECTED"
	NumberChanged           Cause = "NUMBER_CHANGED"
	DestinationOutOfOrder   Cause = "DESTINATION_OUT_OF_ORDER"
	InvalidNumberFormat     Cause = "INVALID_NUMBER_FORMAT"
	FacilityRejected        Cause = "FACILITY_REJECTED"
	NormalTemporaryFailure  Cause = "NORMAL_TEMPORARY_FAILURE"
	SwitchCongestion        Cause = "SWITCH_CONGESTION"
	BearerCapability        Cause = "BEARERCAPABILITY_NOTAVAIL"
	ServiceNotImplemented   Cause = "SERVICE_NOT_IMPLEMENTED"
	IncompatibleDestination Cause = "INCOMPATIBLE_DESTINATION"
	RecoveryOnTimerExpire   Cause = "RECOVERY_ON_TIMER_EXPIRE"
	Interworking            Cause = "INTERWORKING"
	OriginatorCancel        Cause = "ORIGINATOR_CANCEL"
	LoseRace                Cause = "LOSE_RACE" // another of the user's phones answered first
)

// q850Numbers has the Q.850 numbers under FreeSWITCH's names. ORIGINATOR_CANCEL, LOSE_RACE and the causes above
// 127 are FreeSWITCH's own; in SIP they are sent as the nearest of Q.850.
var q850Numbers = map[Cause]int{
	UnallocatedNumber: 1, "NO_ROUTE_TRANSIT_NET": 2, "NO_ROUTE_DESTINATION": 3, "CHANNEL_UNACCEPTABLE": 6,
	"CALL_AWARDED_DELIVERED": 7,
	NormalClearing:           16, UserBusy: 17, NoUserResponse: 18, NoAnswer: 19, SubscriberAbsent: 20,
	CallRejected: 21, NumberChanged: 22, "REDIRECTION_TO_NEW_DESTINATION": 23, "EXCHANGE_ROUTING_ERROR": 25,
	DestinationOutOfOrder: 27, InvalidNumberFormat: 28, FacilityRejected: 29, "RESPONSE_TO_STATUS_ENQUIRY": 30,
	"NORMAL_UNSPECIFIED":        31,
	"NORMAL_CIRCUIT_CONGESTION": 34, "NETWORK_OUT_OF_ORDER": 38,
	NormalTemporaryFailure: 41, SwitchCongestion: 42, "ACCESS_INFO_DISCARDED": 43, "REQUESTED_CHAN_UNAVAIL": 44,
	"PRE_EMPTED":              45,
	"FACILITY_NOT_SUBSCRIBED": 50, "OUTGOING_CALL_BARRED": 52, "INCOMING_CALL_BARRED": 54,
	"BEARERCAPABILITY_NOTAUTH": 57,
	BearerCapability:           58, "SERVICE_UNAVAILABLE": 63, "BEARERCAPABILITY_NOTIMPL": 65,
	"CHAN_NOT_IMPLEMENTED":     66,
	"FACILITY_NOT_IMPLEMENTED": 69,
	ServiceNotImplemented:      79, "INVALID_CALL_REFERENCE": 81, IncompatibleDestination: 88,
	"INVALID_MSG_UNSPECIFIED": 95,
	"MANDATORY_IE_MISSING":    96, "MESSAGE_TYPE_NONEXIST": 97, "WRONG_MESSAGE": 98, "IE_NONEXIST": 99,
	"INVALID_IE_CONTENTS": 100,
	"WRONG_CALL_STATE":    101, RecoveryOnTimerExpire: 102, "MANDATORY_IE_LENGTH_ERROR": 103, "PROTOCOL_ERROR": 111,
	Interworking:     127,
	OriginatorCancel: 16, LoseRace: 26,
	"ALLOTTED_TIMEOUT": 19, "PROGRESS_TIMEOUT": 19, "MEDIA_TIMEOUT": 102, "GATEWAY_DOWN": 27, "INVALID_GATEWAY": 3,
	"INVALID_PROFILE": 3,
	"INVALID_URL":     28, "PICKED_OFF": 26, "BLIND_TRANSFER": 16, "ATTENDED_TRANSFER": 16, "MANAGER_REQUEST": 16,
	"SYSTEM_SHUTDOWN": 41,
	"USER_CHALLENGE":  21, "USER_NOT_REGISTERED": 20, "CRASH": 41, "DECLINE": 21,
}

// causesWithSharedNumber are the causes that are sent with a Q.850 number of another cause, as which the number is
// read.
var causesWithSharedNumber = map[Cause]bool{
	OriginatorCancel: true, LoseRace: true, "ALLOTTED_TIMEOUT": true, "PROGRESS_TIMEOUT": true, "MEDIA_TIMEOUT": true,
	"GATEWAY_DOWN":    true,
	"INVALID_GATEWAY": true, "INVALID_PROFILE": true, "INVALID_URL": true, "PICKED_OFF": true, "BLIND_TRANSFER": true,
	"ATTENDED_TRANSFER": true,
	"MANAGER_REQUEST":   true, "SYSTEM_SHUTDOWN": true, "USER_CHALLENGE": true, "USER_NOT_REGISTERED": true,
	"CRASH": true, "DECLINE": true,
}

// CauseOfQ850 returns the cause with the Q.850 number; ok is false if none has it.
func CauseOfQ850(number int) (cause Cause, ok bool) {
	for cause, n := range q850Numbers {
		if n == number && !causesWithSharedNumber[cause] {
			return cause, true
		}
	}
	return "", false
}

// causeByStatus maps SIP statuses to causes according to RFC 4497, section 8.4.4 (table 1), with
// FreeSWITCH's names and its differences: 480 is SUBSCRIBER_ABSENT and 487 is ORIGINATOR_CANCEL.
var causeByStatus = map[int]Cause{
	400: Interworking, 401: CallRejected, 402: CallRejected, 403: CallRejected, 404: UnallocatedNumber,
	405: ServiceNotImplemented, 406: ServiceNotImplemented, 407: CallRejected, 408: RecoveryOnTimerExpire,
	410: NumberChanged, 413: Interworking, 414: Interworking, 415: ServiceNotImplemented, 420: Interworking,
	480: SubscriberAbsent, 481: NormalTemporaryFailure, 482: Interworking, 483: Interworking,
	484: InvalidNumberFormat, 485: UnallocatedNumber, 486: UserBusy, 487: OriginatorCancel,
	488: IncompatibleDestination, 491: NormalTemporaryFailure, 501: ServiceNotImplemented,
	502: NormalTemporaryFailure, 503: NormalTemporaryFailure, 504: RecoveryOnTimerExpire,
	600: UserBusy, 603: CallRejected, 604: UnallocatedNumber, 606: IncompatibleDestination,
}

// statusByCause maps causes to the statuses that refuse an INVITE (RFC 4497, section 8.4.1).
var statusByCause = map[Cause]status{
	UnallocatedNumber:       {404, "Not Found"},
	UserBusy:                {486, "Busy Here"},
	NoUserResponse:          {408, "Request Timeout"},
	NoAnswer:                {480, "Temporarily Unavailable"},
	SubscriberAbsent:        {480, "Temporarily Unavailable"},
	CallRejected:            {603, "Decline"},
	NumberChanged:           {410, "Gone"},
	InvalidNumberFormat:     {484, "Address Incomplete"},
	FacilityRejected:        {403, "Forbidden"},
	IncompatibleDestination: {488, "Not Acceptable Here"},
	BearerCapability:        {488, "Not Acceptable Here"},
	ServiceNotImplemented:   {501, "Not Implemented"},
	NormalTemporaryFailure:  {503, "Service Unavailable"},
	SwitchCongestion:        {503, "Service Unavailable"},
	DestinationOutOfOrder:   {502, "Bad Gateway"},
	RecoveryOnTimerExpire:   {504, "Server Time-out"},
	OriginatorCancel:        {487, "Request Terminated"},
}

// status is the code and the reason phrase of a SIP response.
type status struct {
	code   int
	reason string
}

// CauseOfStatus returns the cause for a final SIP status.
func CauseOfStatus(code int) Cause {
	if cause, ok := causeByStatus[code]; ok {
		return cause
	}

	switch {
	case code < 300:
		return NormalClearing
	case code < 400:
		return NumberChanged // redirections are not followed
	case code < 500:
		return Interworking
	case code < 600:
		return NormalTemporaryFailure
	}

	return CallRejected
}

// sipStatus returns the status that refuses an INVITE for c.
func (c Cause) sipStatus() status {
	if s, ok := statusByCause[c]; ok {
		return s
	}
	return status{480, "Temporarily Unavailable"}
}

// IsKnown reports whether c is a cause with a Q.850 number.
func (c Cause) IsKnown() bool {
	_, known := q850Numbers[c]
	return known
}

// Q850 returns c's Q.850 number.
func (c Cause) Q850() int {
	if n, ok := q850Numbers[c]; ok {
		return n
	}
	return q850Numbers[Interworking]
}

// reasonHeader returns c as the value of a Reason header (RFC 3326).
func (c Cause) reasonHeader() string { return fmt.Sprintf(`Q.850;cause=%d;text="%s"`, c.Q850(), c) }

var (
	reasonCause = regexp.MustCompile(`(?i)^\s*Q\.850\s*;(?:.*;)?\s*cause\s*=\s*(\d{1,3})`)
	reasonText  = regexp.MustCompile(`text\s*=\s*"([A-Z0-9_]{1,40})"`)
)

// causeOfReason parses a Reason header. It returns NORMAL_CLEARING for an unknown value.
func causeOfReason(value string) Cause {
	named := reasonText.FindStringSubmatch(value)
	if named != nil {
		_, known := q850Numbers[Cause(named[1])]
		if known {
			return Cause(named[1])
		}
	}

	numbered := reasonCause.FindStringSubmatch(value)
	if numbered != nil {
		number, err := strconv.Atoi(numbered[1])
		cause, known := CauseOfQ850(number)
		if err == nil && known {
			return cause
		}
	}

	return NormalClearing
}
