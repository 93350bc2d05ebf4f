package event

import "time"

// CloudEventsVersion is the version of CloudEvents that events are written as.
const CloudEventsVersion = "1.0"

// HeaderCloudEvent begins the names of the headers of CloudEvents' Kafka protocol
// binding, binary mode; HeaderContentType is its datacontenttype.
const (
	HeaderCloudEvent  = "ce_"
	HeaderContentType = "content-type"
)

// ContentTypeJSON is the content type of messages.
const ContentTypeJSON = "application/json"

// CloudEvent has the fields of a message that become attributes of a CloudEvent; the
// message is its data.
type CloudEvent struct {
	ID        ID
	AccountID string
	Name      Name  // of the facts; "": NameOther
	Timestamp int64 // Unix seconds, when it happened
}

// CloudAttribute is one attribute of a CloudEvent.
type CloudAttribute struct{ Name, Value string }

// Attributes returns the required attributes and time, in the order in which they are
// written. The type is that of the facts: it is the same on every platform.
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
