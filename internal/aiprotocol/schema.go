package aiprotocol

import (
	"bytes"
	"slices"

	"trunkline/internal/jsonscan"
)

// messageSchema describes an event's message in one direction.
type messageSchema struct {
	event        Event
	extension    bool
	listener     bool     // only of a provider that listens
	optionalBody bool     // no field is required: the object may be absent
	fields       []string // members of its object
	decode       func(*Decoder) error
}

// providerMessages has the messages that a provider may send.
var providerMessages = []messageSchema{
	{EventMedia, false, false, false, []string{"payload"}, (*Decoder).readMedia},
	{EventClear, true, false, true, nil, (*Decoder).readNothing},
	{EventMark, true, false, false, []string{"name"}, (*Decoder).readMarkRequest},
	{EventHangup, true, false, true, []string{"reason"}, (*Decoder).readHangupRequest},
	{EventTransfer, true, false, false, []string{"destination"}, (*Decoder).readTransfer},
	{EventDTMF, true, false, false, []string{"digit", "duration"}, (*Decoder).readDigit},
	{EventTranscript, false, true, false, []string{"text", "final", "track", "startMs", "endMs"},
		(*Decoder).readTranscript},
}

// serviceMessages has the messages that the service sends.
var serviceMessages = []messageSchema{
	{EventMedia, false, false, false, []string{"track", "payload"}, (*Decoder).readTrackMedia},
	{EventStart, false, false, false,
		[]string{"callId", "otherLegCallId", "callerIdNumber", "calleeIdNumber", "accountId", "mediaFormat"},
		(*Decoder).readStart},
	{EventDTMF, false, false, false, []string{"callId", "otherLegCallId", "digit", "duration"}, (*Decoder).readDTMF},
	{EventHangup, false, false, false, []string{"callId", "otherLegCallId", "reason"}, (*Decoder).readHangup},
	{EventMark, true, false, false, []string{"name", "playedMs"}, (*Decoder).readMark},
	{EventCleared, true, false, false, []string{"playedMs", "droppedMs"}, (*Decoder).readCleared},
	{EventTransfer, true, false, false, []string{"destination", "error"}, (*Decoder).readTransferRefused},
	{EventError, true, false, false, []string{"event", "message"}, (*Decoder).readError},
}

func findSchema(schemas []messageSchema, name []byte) *messageSchema {
	for i := range schemas {
		if string(name) == string(schemas[i].event) {
			return &schemas[i]
		}
	}
	return nil
}

// checkMembers returns an error for members that the schema does not have, and for repeated ones.
func (s *messageSchema) checkMembers(raw, body jsonscan.Value) error {
	message := jsonscan.Value(bytes.TrimLeft(raw, " \t\r\n"))
	if err := checkOnlyMembers(message, "the message", []string{"event", string(s.event)}); err != nil {
		return err
	}
	return checkOnlyMembers(body, string(s.event), s.fields)
}

func checkOnlyMembers(object jsonscan.Value, objectName string, allowed []string) (err error) {
	var seen []string
	object.Each(func(key []byte, _ jsonscan.Value) {
		switch name := string(key); {
		case err != nil:
		case !slices.Contains(allowed, name):
			err = NewError(ProblemExtra, "%s has a member %q, which is not described", objectName, shorten(key))
		case slices.Contains(seen, name):
			err = NewError(ProblemExtra, "%s has its member %q twice", objectName, name)
		default:
			seen = append(seen, name)
		}
	})

	return err
}

// shorten shortens a name that a peer sent for use in an error.
func shorten(name []byte) []byte {
	const maxLength = 40
	return name[:min(len(name), maxLength)]
}
