package kazoo

import (
	"strings"

	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/jsonscan"
)

// resync is the format of a live feed's corrections.
var resync = format.Resync("kazoo.resync")

// Source lists the formats of Kazoo.
var Source = format.Source{
	Formats:       []*format.Format{&qubicle, &acdc, &callEvent, &conference, &webhook, &cdr, &resync},
	RecogniseKeys: []string{"call_id", "Call-ID", "call_direction", "app_name", "resync"},
	Recognise:     recognise,
}

const (
	seenCall = iota
	seenDashCall
	seenDirection
	seenApp
	seenResync
)

func recognise(r *format.Unrecognised) (*format.Format, format.Confidence, error) {
	if r.Topic == event.TopicRaw && r.Seen[seenResync].Is("kazoo") {
		return &resync, format.Sure, nil
	}
	f, err := recogniseCDR(r.Seen), error(nil)
	if r.Topic == event.TopicRaw {
		f, err = recogniseEvent(r.Record, r.Fields)
	}
	if f == nil || err != nil {
		return nil, format.Unlikely, err
	}
	return f, format.Sure, nil
}

// OfMessage returns the format of a message of Kazoo's message bus, nil if it has
// none. fields is scratch space.
func OfMessage(message []byte, fields *format.Fields) (*format.Format, error) {
	f, err := recogniseEvent(message, fields)
	if f == nil && err == nil && fields[kzCategory].Is("cdr") {
		f = &cdr
	}
	return f, err
}

// CallRecord is the format of a call record. It can also parse the event
// CHANNEL_DESTROY.
var CallRecord = &cdr

func recogniseEvent(record []byte, f *format.Fields) (*format.Format, error) {
	if err := webhook.Scan(record, f); err != nil { // all its events have the same keys
		return nil, err
	}
	switch category := format.Text(f[kzCategory]); category {
	case "call_event":
		return &callEvent, nil
	case "directory":
		if isRegistration(f) {
			return &callEvent, nil
		}
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

// recogniseCDR recognises Kazoo's document by keys that Trunkline's own row does not
// have; the two have many others in common.
func recogniseCDR(seen []jsonscan.Value) *format.Format {
	if seen[seenDashCall] != nil || seen[seenCall] != nil && (seen[seenDirection] != nil || seen[seenApp] != nil) {
		return &cdr
	}
	return nil
}
