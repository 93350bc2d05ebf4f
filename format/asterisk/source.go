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
	Formats:       []*format.Format{&ami, &cdr, &resync},
	RecogniseKeys: []string{"Event", "Privilege", "Uniqueid", "UniqueID", "Response", "ActionID", "resync"},
	Recognise:     recognise,
}

const (
	seenEvent = iota
	seenPrivilege
	seenLeg
	seenRecordLeg
	seenResponse
	seenAction
	seenResync
)

// recognise is sure of an event by Privilege, which every unsolicited event of the
// manager interface has, or a channel's Uniqueid; Kazoo's conference events have
// an Event too. A response to an action has an ActionID.
func recognise(r *format.Unrecognised) (*format.Format, format.Confidence, error) {
	named := r.Seen[seenEvent].Kind() == jsonscan.String
	switch {
	case r.Topic == event.TopicCDRRaw:
		if r.Seen[seenEvent].Is("Cdr") && r.Seen[seenRecordLeg] != nil {
			return &cdr, format.Sure, nil
		}
	case named && (r.Seen[seenPrivilege] != nil || r.Seen[seenLeg] != nil),
		r.Seen[seenAction] != nil && (named || r.Seen[seenResponse] != nil):
		return &ami, format.Sure, nil
	case r.Seen[seenResync].Is("asterisk"):
		return &resync, format.Sure, nil
	}
	return nil, format.Unlikely, nil
}
