package conn

import (
	"unsafe"

	"trunkline/internal/wsframe"
)

// Frame is a unit of bytes that is sent completely or not at all. It is immutable and
// may be in any number of queues.
type Frame struct {
	Wire         []byte // header and payload
	ID           int64  // of the message; 0: a control frame such as ping or close
	block        *Block // the block that contains Wire; nil: none
	blockOffset  uint32 // offset of Wire in block.bytes
	headerLength uint8  // length of the WebSocket header in Wire
}

// Payload returns the frame without its WebSocket header.
func (f *Frame) Payload() []byte { return f.Wire[f.headerLength:] }

// Block is the memory of several consecutive frames, so that adjacent frames can be
// sent as one slice. Each of its frames keeps the whole block in memory.
type Block struct {
	RetainedBytes int // bytes of memory that a frame of the block keeps; set before the first is queued

	bytes   []byte
	counted uint64 // see Queue.CountHeld
}

// Sizes of the package's own structures, counted as memory of a queue.
const (
	FrameBytes   = int(unsafe.Sizeof(Frame{}))
	BlockBytes   = int(unsafe.Sizeof(Block{}))
	pointerBytes = int(unsafe.Sizeof((*Frame)(nil)))
)

// MaxHeader is the longest header that AppendMessage adds to a payload.
const MaxHeader = wsframe.MaxServerHeader

// Allocate reserves size bytes for the frames of a block, headers included. It must be
// called once before AppendMessage; the frames must fit.
func (b *Block) Allocate(size int) { b.bytes = make([]byte, 0, size) }

// Cap returns the bytes that Allocate has allocated.
func (b *Block) Cap() int { return cap(b.bytes) }

// AppendMessage adds a WebSocket text message to the block.
func (b *Block) AppendMessage(id int64, payload []byte) Frame {
	start := len(b.bytes)
	b.bytes = wsframe.AppendHeader(b.bytes, wsframe.Text, len(payload))
	header := len(b.bytes) - start
	b.bytes = append(b.bytes, payload...)
	return Frame{Wire: b.bytes[start:], ID: id, block: b, blockOffset: uint32(start), headerLength: uint8(header)}
}

// follows reports whether f directly follows prev in memory.
func (f *Frame) follows(prev *Frame) bool {
	return f.block != nil && f.block == prev.block && int(f.blockOffset) == int(prev.blockOffset)+len(prev.Wire)
}

// cost returns the bytes of memory that a reference to f retains.
func (f *Frame) cost() int {
	if f.block == nil {
		return FrameBytes + cap(f.Wire)
	}
	return f.block.RetainedBytes
}

func (f *Frame) sharesBlock(with *Frame) bool { return f.block != nil && f.block == with.block }

func newFrame(op byte, payload []byte) *Frame {
	wire := wsframe.AppendHeader(make([]byte, 0, len(payload)+MaxHeader), op, len(payload))
	header := len(wire)
	return &Frame{Wire: append(wire, payload...), headerLength: uint8(header)}
}

// Ping is a WebSocket ping.
var Ping = newFrame(wsframe.Ping, nil)

// NewPong returns a WebSocket pong with the payload of the ping.
func NewPong(payload []byte) *Frame { return newFrame(wsframe.Pong, payload) }

// NewText returns a WebSocket text message without an id.
func NewText(payload []byte) *Frame { return newFrame(wsframe.Text, payload) }

// NewClose returns a WebSocket close frame.
func NewClose(d Disconnect) *Frame {
	return newFrame(wsframe.Close, wsframe.AppendClose(nil, int(d.Code), d.Reason))
}

// NewCompressed returns a WebSocket text message whose payload is compressed by
// permessage-deflate. It may be shared by several queues.
func NewCompressed(id int64, payload []byte) *Frame {
	// One allocation for the frame and its block.
	shared := &struct {
		Block
		frame Frame
	}{}
	b := &shared.Block
	b.bytes = wsframe.AppendHeader(make([]byte, 0, len(payload)+MaxHeader), wsframe.Text|wsframe.Compressed,
		len(payload))
	header := len(b.bytes)
	b.bytes = append(b.bytes, payload...)
	b.RetainedBytes = BlockBytes + FrameBytes + cap(b.bytes)
	shared.frame = Frame{Wire: b.bytes, ID: id, block: b, headerLength: uint8(header)}

	return &shared.frame
}
