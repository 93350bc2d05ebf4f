package fanout

import (
	"strings"
	"unsafe"

	"trunkline/event"
	"trunkline/fanout/conn"
	"trunkline/identity"
)

// frame is a message with its WebSocket frame and the fields that matching and
// resuming use. It is immutable and shared by every subscriber and the ring.
type frame struct {
	conn.Frame
	isRepeat    bool // its source record is in an earlier frame of the partition
	partition   uint16
	epoch       int32 // leader epoch of the record
	typeBits    event.TypeSet
	name        event.NameSet // of the facts: one bit
	account     string
	ids         factIDs
	id          event.ID
	offset      int64            // in cc.evt
	rawPosition int64            // event.Position.Packed of the raw record, -1 when unknown
	compressed  *compressedFrame // the frame compressed; nil: compression is off
}

// factIDs holds the agent, queue and call ids of a message's facts in one string; ""
// means the message has none. Behind them are the agent's other queues.
type factIDs struct {
	text                           string
	queueAt, callAt, otherQueuesAt uint16
}

func (f *factIDs) agent() string { return f.text[:f.queueAt] }

func (f *factIDs) queue() string { return f.text[f.queueAt:f.callAt] }

func (f *factIDs) call() string { return f.text[f.callAt:f.otherQueuesAt] }

// otherQueues returns the agent's queues other than queue, as in event.HeaderAgentQueues.
func (f *factIDs) otherQueues() string { return f.text[f.otherQueuesAt:] }

// maxOtherQueues bounds the queues of an agent in a factIDs, in bytes.
const maxOtherQueues = 32 << 10

// newFactIDs appends the ids to text, which holds those of a whole batch. Ids longer
// than a filter can name are omitted.
func newFactIDs(text *strings.Builder, agent, queue, call, memberOf []byte) factIDs {
	start := text.Len()
	write := func(id []byte) uint16 {
		if len(id) <= identity.MaxFilterID {
			text.Write(id)
		}
		return uint16(text.Len() - start)
	}

	f := factIDs{queueAt: write(agent), callAt: write(queue)}
	f.otherQueuesAt = write(call)
	if len(memberOf) <= maxOtherQueues {
		text.Write(memberOf)
	}

	f.text = text.String()[start:]
	return f
}

const (
	frameBytes = int(unsafe.Sizeof(frame{}))
	batchBytes = int(unsafe.Sizeof(batch{}))
)
