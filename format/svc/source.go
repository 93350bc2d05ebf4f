// Package svc has the specification's own shapes: its contact-center event
// (svc.cc) and its call record row (svc.cdr).
package svc

import (
	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/jsonscan"
)

// Source lists the specification's own formats.
var Source = format.Source{
	Formats:       []*format.Format{&contactCenter, &cdr},
	RecogniseKeys: []string{"Account-ID", "Type", "call_id"},
	Recognise:     recognise,
}

func recognise(topic string, top *format.TopLevel) (*format.Format, format.Confidence, error) {
	if topic == event.TopicCDRRaw {
		if top.Get("call_id") != nil {
			return &cdr, format.Likely, nil
		}
		return nil, format.Unlikely, nil
	}
	name, isString := top.Get("Type").Text()
	if isString && (top.Get("Account-ID").Kind() == jsonscan.String || event.Type(name).Known()) {
		return &contactCenter, format.Likely, nil
	}
	return nil, format.Unlikely, nil
}
