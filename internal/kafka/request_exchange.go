package kafka

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kmsg"

	"trunkline/internal/kafka/wire"
)

// maxResponseBytes bounds the size field of a response. The largest requested response is a
// fetch of a few MiB; one batch may exceed the requested size.
const maxResponseBytes = 64 << 20

// exchange is one request and response encoded by this package, over a connection that
// kafka-go dials, secures and authenticates. It is used once. When the call fails, a
// connection may still be writing frame and filling response: then neither may be
// reused.
type exchange struct {
	key         protocol.ApiKey
	version     int16
	frame       []byte // complete request, starting with its size
	response    []byte // after the correlation id; reuses this memory if set
	unsupported bool   // the broker does not support version
	sent        atomic.Bool
}

// ApiKey implements protocol.Message.
func (e *exchange) ApiKey() protocol.ApiKey { return e.key }

// Required implements protocol.RawExchanger. versions has the newest versions
// supported by both kafka-go and the broker, so a broker newer than kafka-go is
// accepted.
func (e *exchange) Required(versions map[protocol.ApiKey]int16) bool {
	if e.key == protocol.ApiKey(kmsg.DescribeCluster) { // not supported by kafka-go
		return true
	}
	version, known := versions[e.key]
	e.unsupported = !known || version < min(e.version, e.key.MaxVersion())
	return true
}

// RawExchange implements protocol.RawExchanger.
func (e *exchange) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	if e.unsupported {
		return nil, fmt.Errorf("%s v%d: %w", e.key, e.version, kafkago.UnsupportedVersion)
	}

	// Before the write: a part of the frame may arrive even if the write fails.
	e.sent.Store(true)
	_, err := rw.Write(e.frame)
	if err != nil {
		return nil, err
	}

	var head [8]byte
	_, err = io.ReadFull(rw, head[:])
	if err != nil {
		return nil, err
	}

	size := int(binary.BigEndian.Uint32(head[:])) - 4
	if size < 0 || size > maxResponseBytes {
		return nil, fmt.Errorf("a response of %d bytes", size)
	}
	if [4]byte(head[4:]) != [4]byte(e.frame[8:]) {
		return nil, fmt.Errorf("a response to another request")
	}
	if cap(e.response) < size {
		// With a reserve, so that a slightly larger response fits when the caller uses the buffer again.
		e.response = make([]byte, size, size+size/4)
	}

	e.response = e.response[:size]
	_, err = io.ReadFull(rw, e.response)
	if err != nil {
		return nil, err
	}

	return e, nil
}

// The request versions, which every supported broker (Kafka 3.9 to 4.x) and the
// embedded one support: the newest in the older encoding, or the first with the
// necessary fields. Metadata has topic ids from version 10 on.
const (
	produceVersion        = 7
	fetchVersion          = 13 // topics by id
	listOffsetsVersion    = 4
	metadataVersion       = 12
	initProducerIDVersion = 1
	saslVersion           = 1

	// New in Kafka 4.0; an older broker closes the connection.
	describeClusterVersion = 2

	epochEndVersion = 3
)

// appendRequestHeader begins a request; setFrameSize completes it. The correlation id is always
// zero: a connection has one request at a time.
func appendRequestHeader(b []byte, key protocol.ApiKey, version int16) []byte {
	b = wire.AppendInt32(b, 0) // size
	b = wire.AppendInt16(b, int16(key))
	b = wire.AppendInt16(b, version)
	b = wire.AppendInt32(b, 0) // correlation id
	return wire.AppendString(b, clientID)
}

// appendFlexibleRequestHeader is appendRequestHeader for a request in the flexible encoding; its
// response begins with tagged fields.
func appendFlexibleRequestHeader(b []byte, key protocol.ApiKey, version int16) []byte {
	return wire.AppendNoTags(appendRequestHeader(b, key, version))
}

func setFrameSize(b []byte) []byte {
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

var requestFormatter = kmsg.NewRequestFormatter(kmsg.FormatterClientID(clientID))

// request sends one small request to the broker at address, or to any if address is empty,
// and returns its response, of the type that belongs to req.
func (c *Cluster) request(ctx context.Context, address string, req kmsg.Request) (kmsg.Response, error) {
	e := &exchange{key: protocol.ApiKey(req.Key()), version: req.GetVersion(),
		frame: requestFormatter.AppendRequest(nil, req, 0)}
	if err := c.roundTrip(ctx, address, e, smallRequestTimeout); err != nil {
		return nil, err
	}
	return readResponse(req, e.response)
}

// readResponse decodes the response to req; body starts after the correlation id.
func readResponse(req kmsg.Request, body []byte) (kmsg.Response, error) {
	r := &wire.FieldReader{B: body}
	if req.IsFlexible() {
		r.Tags(nil)
	}

	res := req.ResponseKind()
	err := res.ReadFrom(r.B)
	if err != nil || r.Bad {
		return nil, wire.ErrMalformed
	}

	return res, nil
}

// Timeouts of one response, after which the connection is closed: without them, a call
// to a peer that has vanished would never return. Small requests have a shorter
// timeout, since any broker can answer most of them.
const (
	requestTimeout      = 10 * time.Second
	smallRequestTimeout = 5 * time.Second
)

// roundTrip sends e to the broker at address, or to any if address is empty, and waits
// for the response or the end of ctx.
func (c *Cluster) roundTrip(ctx context.Context, address string, e *exchange, timeout time.Duration) error {
	server := c.seeds
	if address != "" {
		server = kafkago.TCP(address)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := c.transport.RoundTrip(ctx, server, e)
	return err
}
