package aiprotocol

import (
	"bytes"
	"slices"

	"trunkline/internal/jsonscan"
)

// shape is the form of an event's message in one direction.
type shape struct {
	event      Event
	extra      bool
	mayBeEmpty bool     // no field is required: the object may be absent
	fields     []string // members of its object
	read       func(*Decoder) error
}

// requests has the messages that a provider may send.
var requests = []shape{
	{EventMedia, false, false, []string{"payload"}, (*Decoder).readMedia},
	{EventClear, true, true, nil, (*Decoder).readNothing},
	{EventMark, true, false, []string{"name"}, (*Decoder).readMarkRequest},
	{EventHangup, true, true, []string{"reason"}, (*Decoder).readHangupRequest},
	{EventTransfer, true, false, []string{"destination"}, (*Decoder).readTransfer},
	{EventDTMF, true, false, []string{"digit", "duration"}, (*Decoder).readDigit},
}

// statements has the messages that the service sends.
var statements = []shape{
	{EventMedia, false, false, []string{"payload"}, (*Decoder).readMedia},
	{EventStart, false, false, []string{"callId", "otherLegCallId", "callerIdNumber", "calleeIdNumber", "accountId", "mediaFormat"}, (*Decoder).readStart},
	{EventDTMF, false, false, []string{"callId", "otherLegCallId", "digit", "duration"}, (*Decoder).readDTMF},
	{EventHangup, false, false, []string{"callId", "otherLegCallId", "reason"}, (*Decoder).readHangup},
	{EventMark, true, false, []string{"name", "playedMs"}, (*Decoder).readMark},
	{EventCleared, true, false, []string{"playedMs", "droppedMs"}, (*Decoder).readCleared},
	{EventTransfer, true, false, []string{"destination", "error"}, (*Decoder).readTransferRefused},
}

func find(known []shape, name []byte) *shape {
	for i := range known {
		if string(name) == string(known[i].event) {
			return &known[i]
		}
	}
	return nil
}

// only returns an error for members that the shape does not have, and for repeated ones.
func (s *shape) only(raw, body jsonscan.Value) error {
	whole := jsonscan.Value(bytes.TrimLeft(raw, " \t\r\n"))
	if err := onlyMembers(whole, "the message", []string{"event", string(s.event)}); err != nil {
		return err
	}
	return onlyMembers(body, string(s.event), s.fields)
}

func onlyMembers(object jsonscan.Value, where string, allowed []string) (err error) {
	var seen []string
	object.Each(func(key []byte, _ jsonscan.Value) {
		switch name := string(key); {
		case err != nil:
		case !slices.Contains(allowed, name):
			err = newError(ProblemExtra, "%s has a member %q, which is not described", where, shorten(key))
		case slices.Contains(seen, name):
			err = newError(ProblemExtra, "%s has its member %q twice", where, name)
		default:
			seen = append(seen, name)
		}
	})
	return err
}

// shorten shortens a name that a peer sent for use in an error.
func shorten(name []byte) []byte {
	const most = 40
	return name[:min(len(name), most)]
}
