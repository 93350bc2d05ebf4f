package kazoo

import (
	"strings"

	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/jsonscan"
)

// Source lists what Kazoo sends.
var Source = format.Source{
	Formats:       []*format.Format{&qubicle, &acdc, &callEvent, &conference, &webhook, &cdr},
	RecogniseKeys: []string{"call_id", "Call-ID", "call_direction", "app_name"},
	Recognise:     recognise,
}

const (
	seenCall = iota
	seenDashCall
	seenDirection
	seenApp
)

func recognise(r *format.Unrecognised) (*format.Format, format.Confidence, error) {
	f, err := recogniseCDR(r.Seen), error(nil)
	if r.Topic == event.TopicRaw {
		f, err = recogniseEvent(r.Record, r.Fields)
	}
	if f == nil || err != nil {
		return nil, format.Unlikely, err
	}
	return f, format.Sure, nil
}

func recogniseEvent(record []byte, f *format.Fields) (*format.Format, error) {
	if err := webhook.Scan(record, f); err != nil { // all its events have the same keys
		return nil, err
	}
	switch category := format.Text(f[kzCategory]); category {
	case "call_event":
		return &callEvent, nil
	case "conference":
		return &conference, nil
	case "agent", "queue", "member", "acdc_call_stat", "acdc_status_stat":
		return &acdc, nil
	default:
		if strings.HasPrefix(category, "qubicle") {
			return &qubicle, nil
		}
	}
	if f[kzName] == nil && strings.HasPrefix(format.Text(f[kzEnvelopeName]), "CHANNEL_") {
		return &callEvent, nil
	}
	if f[kzHook] != nil || (f[kzCallState] != nil && f[kzQueue] != nil) {
		return &webhook, nil
	}
	return nil, nil
}

// recogniseCDR recognises Kazoo's document by the keys that our own row, which has
// many of its others, does not have.
func recogniseCDR(seen []jsonscan.Value) *format.Format {
	if seen[seenDashCall] != nil || seen[seenCall] != nil && (seen[seenDirection] != nil || seen[seenApp] != nil) {
		return &cdr
	}
	return nil
}
