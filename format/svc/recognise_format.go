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
	Formats:       []*format.Format{&contactCenterFormat, &cdrFormat},
	RecogniseKeys: []string{"Account-ID", "Type", "call_id"},
	Recognise:     recognise,
}

// Slots of RecogniseKeys.
const (
	keyAccount = iota
	keyType
	keyCall
)

// recognise finds a row likely by its call_id, and an event by its account and type.
func recognise(r *format.Unrecognised) (*format.Format, format.Confidence, error) {
	if r.Topic == event.TopicCDRRaw {
		if r.Values[keyCall] != nil {
			return &cdrFormat, format.Likely, nil
		}
		return nil, format.Unlikely, nil
	}

	name, isString := r.Values[keyType].Text()
	if isString && (r.Values[keyAccount].Kind() == jsonscan.String || event.Type(name).Known()) {
		return &contactCenterFormat, format.Likely, nil
	}

	return nil, format.Unlikely, nil
}
