package aiprotocol

import (
	"bytes"
	"slices"

	"trunkline/internal/jsonscan"
)

// messageSchema describes an event's message in one direction.
type messageSchema struct {
	event        Event
	extension    bool                 // only of a provider that opted in
	listener     bool                 // only of a provider that listens
	optionalBody bool                 // no field is required: the object may be absent
	fields       []string             // members of its object
	decode       func(*Decoder) error // reads them into the decoder's message
}

// providerMessages has the messages that a provider may send.
var providerMessages = []messageSchema{
	{event: EventMedia, fields: []string{"payload"}, decode: (*Decoder).readMedia},
	{event: EventClear, extension: true, optionalBody: true, decode: (*Decoder).readNothing},
	{event: EventMark, extension: true, fields: []string{"name"}, decode: (*Decoder).readMarkRequest},
	{event: EventHangup, extension: true, optionalBody: true, fields: []string{"reason"},
		decode: (*Decoder).readHangupRequest},
	{event: EventTransfer, extension: true, fields: []string{"destination"}, decode: (*Decoder).readTransfer},
	{event: EventDTMF, extension: true, fields: []string{"digit", "duration"}, decode: (*Decoder).readDigit},
	{event: EventTranscript, listener: true, fields: []string{"text", "final", "track", "startMs", "endMs"},
		decode: (*Decoder).readTranscript},
}

// serviceMessages has the messages that the service sends.
var serviceMessages = []messageSchema{
	{event: EventMedia, fields: []string{"track", "payload"}, decode: (*Decoder).readTrackMedia},
	{event: EventStart,
		fields: []string{"callId", "otherLegCallId", "callerIdNumber", "calleeIdNumber", "accountId", "mediaFormat"},
		decode: (*Decoder).readStart},
	{event: EventDTMF, fields: []string{"callId", "otherLegCallId", "digit", "duration"}, decode: (*Decoder).readDTMF},
	{event: EventHangup, fields: []string{"callId", "otherLegCallId", "reason"}, decode: (*Decoder).readHangup},
	{event: EventMark, extension: true, fields: []string{"name", "playedMs"}, decode: (*Decoder).readMark},
	{event: EventCleared, extension: true, fields: []string{"playedMs", "droppedMs"}, decode: (*Decoder).readCleared},
	{event: EventTransfer, extension: true, fields: []string{"destination", "error"},
		decode: (*Decoder).readTransferRefused},
	{event: EventError, extension: true, fields: []string{"event", "message"}, decode: (*Decoder).readError},
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
