package event

import "time"

// CloudEventsVersion is the specversion of the CloudEvents headers.
const CloudEventsVersion = "1.0"

// HeaderCloudEvent is the prefix of the header names in CloudEvents' Kafka protocol
// binding, binary mode; HeaderContentType is its datacontenttype.
const (
	HeaderCloudEvent  = "ce_"
	HeaderContentType = "content-type"
)

// ContentTypeJSON is the content type of messages.
const ContentTypeJSON = "application/json"

// CloudEvent holds the fields of a message that become attributes of a CloudEvent; the
// message is its data.
type CloudEvent struct {
	ID        ID
	AccountID string
	Name      Name  // of the facts; "": NameOther
	Timestamp int64 // Unix seconds of the event
}

// CloudAttribute is one attribute of a CloudEvent.
type CloudAttribute struct{ Name, Value string }

// Attributes returns the required attributes and time, in their order on the wire. The
// type is the name in the facts, which does not depend on the platform.
func (e CloudEvent) Attributes() []CloudAttribute {
	name := e.Name
	if name == "" {
		name = NameOther
	}

	return []CloudAttribute{
		{"specversion", CloudEventsVersion},
		{"id", e.ID.String()},
		{"source", "/accounts/" + e.AccountID},
		{"type", "trunkline." + string(name)},
		{"time", time.Unix(e.Timestamp, 0).UTC().Format(time.RFC3339)},
	}
}
