package normalizer

import (
	"strings"

	"trunkline/event"
	"trunkline/internal/jsonscan"
)

// FormatUnknown is the original_format of a message whose record told nothing
// but its account.
const FormatUnknown = "unknown"

// recogniseKeys tell the formats apart.
var recogniseKeys = jsonscan.KeysOf(
	"Core-UUID", "Event-Name", "CC-Action",
	"Account-ID", "account_id", "Type", "type",
	"variables", "call_id", "call_direction", "app_name", "Call-ID",
)

const (
	seenCore = iota
	seenName
	seenAction
	seenAccount
	seenSnakeAccount
	seenType
	seenSnakeType
	seenVariables
	seenCall
	seenDirection
	seenApp
	seenDashCall
)

// Recognise tells the format of a record without a format header from its
// keys. ok is false when they tell none, or the record is no JSON object.
func Recognise(topic string, record []byte) (name string, ok bool) {
	f, _, err := recognise(topic, record)
	if f == nil || err != nil {
		return "", false
	}
	return f.name, true
}

// recognise is Recognise; where no format is told it gives the account that
// the record names under one of its two plain keys.
func recognise(topic string, record []byte) (f *format, account string, err error) {
	var seen fields
	if err := recogniseKeys.Scan(record, seen[:]); err != nil {
		return nil, "", scanRejection(err)
	}
	switch topic {
	case event.TopicRaw:
		f, err = recogniseEvent(&seen, record)
	case event.TopicCDRRaw:
		f, err = recogniseCDR(&seen), nil
	}
	return f, firstStr(seen[seenAccount], seen[seenSnakeAccount]), err
}

func recogniseEvent(seen *fields, record []byte) (*format, error) {
	if seen[seenAction] != nil {
		return &freeswitchCallcenter, nil
	}
	if seen[seenName] != nil && seen[seenCore] != nil {
		return &freeswitchEvent, nil
	}
	if f, err := recogniseKazoo(record); f != nil || err != nil {
		return f, err
	}
	if seen[seenName] != nil { // Kazoo's has a category too
		return &freeswitchEvent, nil
	}
	name, isString := seen[seenType].Text()
	if isString && (seen[seenAccount].Kind() == jsonscan.String || event.Type(name).Known()) {
		return &svcCC, nil
	}
	if event.Type(str(seen[seenSnakeType])).Known() {
		return &generic, nil
	}
	return nil, nil
}

func recogniseKazoo(record []byte) (*format, error) {
	var f fields
	if err := kazooKeys.Scan(record, f[:]); err != nil {
		return nil, scanRejection(err)
	}
	if err := openKazoo(kazooKeys, &f); err != nil {
		return nil, scanRejection(err)
	}
	switch category := str(f[kzCategory]); category {
	case "call_event":
		return &kazooCallEvent, nil
	case "conference":
		return &kazooConference, nil
	case "agent", "queue", "member", "acdc_call_stat", "acdc_status_stat":
		return &kazooACDc, nil
	default:
		if strings.HasPrefix(category, "qubicle") {
			return &kazooQubicle, nil
		}
	}
	if f[kzName] == nil && strings.HasPrefix(str(f[kzEnvelopeName]), "CHANNEL_") {
		return &kazooCallEvent, nil
	}
	if f[kzHook] != nil || (f[kzCallState] != nil && f[kzQueue] != nil) {
		return &kazooWebhook, nil
	}
	return nil, nil
}

// recogniseCDR tells Kazoo's document from our own row, which has many of its
// keys, by those that only Kazoo writes.
func recogniseCDR(seen *fields) *format {
	switch {
	case seen[seenVariables].Kind() == jsonscan.Object:
		return &freeswitchCDR
	case seen[seenDashCall] != nil, seen[seenCall] != nil && (seen[seenDirection] != nil || seen[seenApp] != nil):
		return &kazooCDR
	case seen[seenCall] != nil:
		return &svcCDR
	}
	return nil
}
