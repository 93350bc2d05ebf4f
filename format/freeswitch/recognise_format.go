package freeswitch

import (
	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/jsonscan"
)

// resyncFormat is the format of a live feed's corrections.
var resyncFormat = format.ResyncFormat("freeswitch.resync", extension)

// Source lists the formats of FreeSWITCH.
var Source = format.Source{
	Formats:       []*format.Format{&callcenterFormat, &eventFormat, &jsonCDRFormat, &resyncFormat},
	RecogniseKeys: []string{"Core-UUID", "Event-Name", "CC-Action", "variables", "resync"},
	Recognise:     recognise,
}

// Slots of RecogniseKeys.
const (
	keyCore = iota
	keyName
	keyAction
	keyVariables
	keyResync
)

// recognise is sure of an event only by Core-UUID or CC-Action: Kazoo's events have an
// Event-Name too.
func recognise(r *format.Unrecognised) (*format.Format, format.Confidence, error) {
	switch {
	case r.Topic == event.TopicCDRRaw:
		if r.Values[keyVariables].Kind() == jsonscan.Object {
			return &jsonCDRFormat, format.Sure, nil
		}
	case r.Values[keyResync].Is("freeswitch"):
		return &resyncFormat, format.Sure, nil
	case r.Values[keyAction] != nil:
		return &callcenterFormat, format.Sure, nil
	case r.Values[keyName] != nil && r.Values[keyCore] != nil:
		return &eventFormat, format.Sure, nil
	case r.Values[keyName] != nil:
		return &eventFormat, format.Likely, nil
	}

	return nil, format.Unlikely, nil
}
