// Package svc decodes the contact-center event and call record of
// docs/topics.md: the event (svc.cc) and its call record row (svc.cdr).
package svc

import (
	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/jsonscan"
)

// Source lists the formats of this package.
var Source = format.Source{
	Formats:       []*format.Format{&contactCenter, &cdr},
	RecogniseKeys: []string{"Account-ID", "Type", "call_id"},
	Recognise:     recognise,
}

const (
	seenAccount = iota
	seenType
	seenCall
)

func recognise(r *format.Unrecognised) (*format.Format, format.Confidence, error) {
	if r.Topic == event.TopicCDRRaw {
		if r.Seen[seenCall] != nil {
			return &cdr, format.Likely, nil
		}
		return nil, format.Unlikely, nil
	}
	name, isString := r.Seen[seenType].Text()
	if isString && (r.Seen[seenAccount].Kind() == jsonscan.String || event.Type(name).Known()) {
		return &contactCenter, format.Likely, nil
	}
	return nil, format.Unlikely, nil
}
