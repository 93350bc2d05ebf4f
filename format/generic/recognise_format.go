// Package generic has the format for sources that already use the event types of
// docs/channel.md: {type, account_id?, timestamp?, queue_id?, data?}.
package generic

import (
	"trunkline/event"
	"trunkline/format"
)

// Source lists the one generic format.
var Source = format.Source{
	Formats:       []*format.Format{&eventFormat},
	RecogniseKeys: []string{"type"},
	Recognise: func(r *format.Unrecognised) (*format.Format, format.Confidence, error) {
		if r.Topic == event.TopicRaw && event.Type(format.Text(r.Values[0])).Known() {
			return &eventFormat, format.Likely, nil
		}
		return nil, format.Unlikely, nil
	},
}
