package asterisk

import (
	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/jsonscan"
)

// The names of the formats.
const (
	EventFormatName  = "asterisk.ami"
	CDRFormatName    = "asterisk.cdr"
	ResyncFormatName = "asterisk.resync"
)

// resyncFormat is the format of a live feed's corrections.
var resyncFormat = format.ResyncFormat(ResyncFormatName, extensionOf)

// Source lists the formats of Asterisk.
var Source = format.Source{
	Formats:       []*format.Format{&amiFormat, &cdrFormat, &resyncFormat},
	RecogniseKeys: []string{"Event", "Privilege", "Uniqueid", "UniqueID", "Response", "ActionID", "resync"},
	Recognise:     recognise,
}

// Slots of RecogniseKeys.
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
	hasEventName := r.Values[keyEvent].Kind() == jsonscan.String
	switch {
	case r.Topic == event.TopicCDRRaw:
		if r.Values[keyEvent].Is("Cdr") && r.Values[keyCDRChannel] != nil {
			return &cdrFormat, format.Sure, nil
		}
	case hasEventName && (r.Values[keyPrivilege] != nil || r.Values[keyChannel] != nil),
		r.Values[keyAction] != nil && (hasEventName || r.Values[keyResponse] != nil):
		return &amiFormat, format.Sure, nil
	case r.Values[keyResync].Is("asterisk"):
		return &resyncFormat, format.Sure, nil
	}

	return nil, format.Unlikely, nil
}
