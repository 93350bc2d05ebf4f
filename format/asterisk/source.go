package asterisk

import (
	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/jsonscan"
)

// The names of the formats.
const (
	EventFormat  = "asterisk.ami"
	RecordFormat = "asterisk.cdr"
	ResyncFormat = "asterisk.resync"
)

// resync is the format of a live feed's corrections.
var resync = format.Resync(ResyncFormat)

// Source lists the formats of Asterisk.
var Source = format.Source{
	Formats:       []*format.Format{&amiFormat, &cdrFormat, &resync},
	RecogniseKeys: []string{"Event", "Privilege", "Uniqueid", "UniqueID", "Response", "ActionID", "resync"},
	Recognise:     recognise,
}

const (
	keyEvent = iota
	keyPrivilege
	keyChannel
	keyCDRChannel
	keyResponse
	keyAction
	keyResync
)

// recognise is sure of an event by Privilege, which every unsolicited event of the
// manager interface has, or a channel's Uniqueid; Kazoo's conference events have
// an Event too. A response to an action has an ActionID.
func recognise(r *format.Unrecognised) (*format.Format, format.Confidence, error) {
	hasEventName := r.Seen[keyEvent].Kind() == jsonscan.String
	switch {
	case r.Topic == event.TopicCDRRaw:
		if r.Seen[keyEvent].Is("Cdr") && r.Seen[keyCDRChannel] != nil {
			return &cdrFormat, format.Sure, nil
		}
	case hasEventName && (r.Seen[keyPrivilege] != nil || r.Seen[keyChannel] != nil),
		r.Seen[keyAction] != nil && (hasEventName || r.Seen[keyResponse] != nil):
		return &amiFormat, format.Sure, nil
	case r.Seen[keyResync].Is("asterisk"):
		return &resync, format.Sure, nil
	}
	return nil, format.Unlikely, nil
}
