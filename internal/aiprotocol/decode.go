package aiprotocol

import (
	"trunkline/internal/jsonscan"
)

// Decoder decodes messages. The zero value decodes as the service does for a provider without
// extensions: it ignores unknown members, and the provider's only known event is media.
type Decoder struct {
	// Extensions enables the extension events.
	Extensions bool
	// Listens enables the event of a provider that listens.
	Listens bool
	// Strict rejects messages that do not match the protocol's description exactly: unknown and
	// repeated members, and base64 without padding.
	Strict bool

	message Message    // of the last call
	audio   []byte     // memory of Message.Audio
	body    bodyValues // of the message that is decoded
}

// maxIdleAudioBytes is the largest buffer in bytes that a decoder keeps between messages.
const maxIdleAudioBytes = 64 << 10

// FromProvider decodes a message from a provider. The result is valid until the next message is
// decoded. The error is an *Error.
func (d *Decoder) FromProvider(raw []byte) (*Message, error) { return d.decode(raw, providerMessages) }

// ToProvider decodes a message from the service to a provider.
func (d *Decoder) ToProvider(raw []byte) (*Message, error) { return d.decode(raw, serviceMessages) }

// topKeys has the members of a message that are decoded: the event, and the objects named after events.
var topKeys = jsonscan.KeysOf("event", string(EventStart), string(EventMedia), string(EventDTMF), string(EventHangup),
	string(EventMark), string(EventClear), string(EventCleared), string(EventTransfer), string(EventError),
	string(EventTranscript))

func (d *Decoder) decode(raw []byte, schemas []messageSchema) (*Message, error) {
	if cap(d.audio) > maxIdleAudioBytes {
		d.audio = nil
	}

	d.message = Message{}
	var members [11]jsonscan.Value
	if err := topKeys.Scan(raw, members[:]); err != nil {
		return nil, NewError(ProblemNotJSON, "the message is %v", err)
	}

	name, ok := members[0].Text()
	if !ok {
		return nil, NewError(ProblemNoEvent, "the message has no event, or it is no string")
	}

	schema := findSchema(schemas, name)
	if schema == nil || schema.extension && !d.Extensions || schema.listener && !d.Listens {
		return nil, NewError(ProblemUnknown, "%q is no event of this direction", shorten(name))
	}

	body := members[topKeys[string(schema.event)]]
	if body.Kind() == jsonscan.None && schema.optionalBody {
		body = jsonscan.Value("{}")
	}
	if body.Kind() != jsonscan.Object {
		return nil, NewError(ProblemBody, "%s: the message has no object of that name", schema.event)
	}

	d.body = bodyValues{}
	if err := bodyKeys.Scan(body, d.body[:]); err != nil {
		return nil, NewError(ProblemNotJSON, "%s is %v", schema.event, err) // Scan has validated it
	}

	if d.Strict {
		if err := schema.checkMembers(raw, body); err != nil {
			return nil, err
		}
	}

	d.message.Event = schema.event
	if err := schema.decode(d); err != nil {
		return nil, err
	}

	return &d.message, nil
}
