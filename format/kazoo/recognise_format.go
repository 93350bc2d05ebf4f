package kazoo

import (
	"strings"

	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/jsonscan"
)

// resyncFormat is the format of a live feed's corrections.
var resyncFormat = format.ResyncFormat("kazoo.resync", nil)

// Source lists the formats of Kazoo.
var Source = format.Source{
	Formats: []*format.Format{&qubicleFormat, &acdcFormat, &callEventFormat, &conferenceFormat, &webhookFormat,
		&cdrFormat, &resyncFormat},
	RecogniseKeys: []string{"call_id", "Call-ID", "call_direction", "app_name", "resync"},
	Recognise:     recognise,
}

// Slots of RecogniseKeys.
const (
	keyCall = iota
	keyDashCall
	keyDirection
	keyApp
	keyResync
)

// recognise is sure of a record by its category, hook or envelope, or by the keys of a call record.
func recognise(r *format.Unrecognised) (*format.Format, format.Confidence, error) {
	if r.Topic == event.TopicRaw && r.Values[keyResync].Is("kazoo") {
		return &resyncFormat, format.Sure, nil
	}

	f, err := recogniseCDR(r.Values), error(nil)
	if r.Topic == event.TopicRaw {
		f, err = recogniseEvent(r.Record, r.Fields)
	}
	if f == nil || err != nil {
		return nil, format.Unlikely, err
	}

	return f, format.Sure, nil
}

// FormatOfMessage returns the format of a message of Kazoo's message bus, nil if it has
// none. fields is scratch space.
func FormatOfMessage(message []byte, fields *format.Fields) (*format.Format, error) {
	f, err := recogniseEvent(message, fields)
	if f == nil && err == nil && fields[kzCategory].Is("cdr") {
		f = &cdrFormat
	}
	return f, err
}

// CallRecord is the format of a call record. It can also parse the event
// CHANNEL_DESTROY.
var CallRecord = &cdrFormat

// recogniseEvent returns the format of an event, nil if it is none of Kazoo's. It leaves the event's fields in f.
func recogniseEvent(record []byte, f *format.Fields) (*format.Format, error) {
	if err := webhookFormat.Scan(record, f); err != nil { // all its events have the same keys
		return nil, err
	}

	switch category := format.Text(f[kzCategory]); category {
	case "call_event":
		return &callEventFormat, nil
	case "directory":
		if isRegistration(f) {
			return &callEventFormat, nil
		}
	case "conference":
		return &conferenceFormat, nil
	case "agent", "queue", "member", "acdc_call_stat", "acdc_status_stat":
		return &acdcFormat, nil
	default:
		if strings.HasPrefix(category, "qubicle") {
			return &qubicleFormat, nil
		}
	}

	if f[kzName] == nil && strings.HasPrefix(format.Text(f[kzEnvelopeName]), "CHANNEL_") {
		return &callEventFormat, nil
	}
	if f[kzHook] != nil || (f[kzCallState] != nil && f[kzQueue] != nil) {
		return &webhookFormat, nil
	}

	return nil, nil
}

// recogniseCDR recognises Kazoo's document by keys that Trunkline's own row does not
// have; the two have many others in common.
func recogniseCDR(values []jsonscan.Value) *format.Format {
	if values[keyDashCall] != nil || values[keyCall] != nil && (values[keyDirection] != nil || values[keyApp] != nil) {
		return &cdrFormat
	}
	return nil
}
