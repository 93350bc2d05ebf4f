package aiprotocol

import (
	"trunkline/internal/jsonscan"
)

// Decoder reads messages. The zero one is as the service reads a provider that
// did not opt in to anything: members it does not know are ignored, and every
// event but media is unknown.
type Decoder struct {
	// Extensions also reads the extras.
	Extensions bool
	// Strict refuses what the descriptions do not have: unknown and repeated
	// members, and base64 that is not padded.
	Strict bool

	message Message
	audio   []byte
	body    values
}

// keptAudio is how much memory a decoder keeps from one message to the next: a
// provider that sends much at once takes it for that message only.
const keptAudio = 64 << 10

// FromProvider reads a message that a provider sent. The answer lasts until the
// next message is read. The error is an *Error.
func (d *Decoder) FromProvider(raw []byte) (*Message, error) { return d.read(raw, requests) }

// ToProvider reads a message of the service's, as a provider does.
func (d *Decoder) ToProvider(raw []byte) (*Message, error) { return d.read(raw, statements) }

// top are the members of a message that can matter: its event, and the object
// of that name.
var top = jsonscan.KeysOf("event", string(EventStart), string(EventMedia), string(EventDTMF), string(EventHangup),
	string(EventMark), string(EventClear), string(EventCleared), string(EventTransfer))

func (d *Decoder) read(raw []byte, known []shape) (*Message, error) {
	if cap(d.audio) > keptAudio {
		d.audio = nil
	}
	d.message = Message{}
	var members [9]jsonscan.Value
	if err := top.Scan(raw, members[:]); err != nil {
		return nil, newError(ProblemNotJSON, "the message is %v", err)
	}
	name, ok := members[0].Text()
	if !ok {
		return nil, newError(ProblemNoEvent, "the message has no event, or it is no string")
	}
	shape := find(known, name)
	if shape == nil || shape.extra && !d.Extensions {
		return nil, newError(ProblemUnknown, "%q is no event of this direction", shorten(name))
	}
	body := members[top[string(shape.event)]]
	if body.Kind() == jsonscan.None && shape.mayBeEmpty {
		body = jsonscan.Value("{}")
	}
	if body.Kind() != jsonscan.Object {
		return nil, newError(ProblemBody, "%s: the message has no object of that name", shape.event)
	}
	d.body = values{}
	if err := fields.Scan(body, d.body[:]); err != nil {
		return nil, newError(ProblemNotJSON, "%s is %v", shape.event, err) // Scan has seen it before
	}
	if d.Strict {
		if err := shape.only(raw, body); err != nil {
			return nil, err
		}
	}
	d.message.Event = shape.event
	if err := shape.read(d); err != nil {
		return nil, err
	}
	return &d.message, nil
}
