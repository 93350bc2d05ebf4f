package kafka

import (
	"context"
	"time"

	"github.com/segmentio/kafka-go/protocol"
)

// What a fetch asks for. A response is sent as soon as there is anything.
const (
	fetchWait     = 500 * time.Millisecond
	fetchMinBytes = 1
	fetchMaxBytes = 4 << 20
	readCommitted = 1 // isolation: only what transactions have committed
)

// fetched is one partition's part of a fetch response.
type fetched struct {
	err         error
	end         int64 // offset after the last record that can be read
	aborted     []abortedTxn
	batches     []byte
	allResponse []byte // the memory batches lies in
}

// fetch asks the partition's leader for records from offset. The response is
// read into buf when it fits.
func (c *Cluster) fetch(ctx context.Context, topic string, partition int, offset int64, buf []byte) (fetched, error) {
	leader, err := c.leaders.leader(ctx, topic, partition)
	if err != nil {
		return fetched{}, err
	}
	b := appendHead(make([]byte, 0, 128+len(topic)), protocol.Fetch, fetchVersion, c.cfg.clientID())
	b = appendInt32(b, -1) // not a replica
	b = appendInt32(b, int32(fetchWait.Milliseconds()))
	b = appendInt32(b, fetchMinBytes)
	b = appendInt32(b, fetchMaxBytes)
	b = append(b, readCommitted)
	b = appendInt32(b, 0)  // no session
	b = appendInt32(b, -1) // its epoch
	b = appendInt32(b, 1)
	b = appendString(b, topic)
	b = appendInt32(b, 1)
	b = appendInt32(b, int32(partition))
	b = appendInt32(b, leader.epoch)
	b = appendInt64(b, offset)
	b = appendInt64(b, -1) // log start: only replicas say
	b = appendInt32(b, fetchMaxBytes)
	b = appendInt32(b, 0) // no topics to forget
	b = appendString(b, "")
	e := &exchange{key: protocol.Fetch, version: fetchVersion, frame: endFrame(b), response: buf[:0]}
	if err := c.roundTrip(ctx, leader.address, e, fetchWait+requestTimeout); err != nil {
		return fetched{}, err
	}
	f, err := readFetch(e.response)
	f.allResponse = e.response
	return f, err
}

// readFetch reads a response that holds one partition.
func readFetch(response []byte) (fetched, error) {
	r := &wireReader{b: response}
	r.int32() // throttle
	if err := code(r.int16()); err != nil {
		return fetched{}, err
	}
	r.int32() // session
	f := fetched{err: errMalformed}
	for range r.array(6) {
		r.string() // topic
		for range r.array(42) {
			r.int32() // partition
			f.err = code(r.int16())
			r.int64() // high watermark
			f.end = r.int64()
			r.int64() // log start
			f.aborted = f.aborted[:0]
			for range r.array(16) {
				f.aborted = append(f.aborted, abortedTxn{r.int64(), r.int64()})
			}
			r.int32() // preferred replica
			f.batches = r.take(max(int(r.int32()), 0))
		}
	}
	if r.bad {
		return fetched{}, errMalformed
	}
	return f, nil
}
