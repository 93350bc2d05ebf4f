package webhook

import "trunkline/event"

// cloudEvent returns a message as a CloudEvent in structured mode (CloudEvents 1.0,
// JSON event format): its attributes, and the message as data.
func cloudEvent(d *delivery) []byte {
	e := event.CloudEvent{ID: d.id, AccountID: d.account, Timestamp: d.id.Time().Unix()}
	m, ok, err := event.MessageFacts(d.message)
	if err == nil {
		e.Timestamp = m.Timestamp
		if ok {
			e.Name = m.Metadata.Facts.Name
		}
	}

	b := append(make([]byte, 0, len(d.message)+256), '{')
	for _, a := range e.Attributes() {
		b = event.AppendString(b, a.Name)
		b = append(b, ':')
		b = event.AppendString(b, a.Value)
		b = append(b, ',')
	}

	b = append(b, `"datacontenttype":"`+event.ContentTypeJSON+`","data":`...)
	b = append(b, d.message...)
	return append(b, '}')
}
