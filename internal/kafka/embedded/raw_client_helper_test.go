package embedded

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// rawClient sends requests over one connection, without retries or look-ups of leaders.
type rawClient struct {
	conn net.Conn
	stop func() bool
}

// newRawClient opens a connection, which is closed at the end of ctx.
func (b *Broker) newRawClient(ctx context.Context) (*rawClient, error) {
	conn, err := b.listener.dialInProcess(ctx)
	if err != nil {
		return nil, err
	}
	return &rawClient{conn, context.AfterFunc(ctx, func() { conn.Close() })}, nil
}

func (a *rawClient) close() {
	a.stop()
	a.conn.Close() // no request is in progress
}

func (a *rawClient) request(req kmsg.Request, res kmsg.Response) error {
	const version = 4 // the requests used here are not flexible in it
	req.SetVersion(version)
	res.SetVersion(version)

	if _, err := a.conn.Write(
		kmsg.NewRequestFormatter(kmsg.FormatterClientID("trunkline")).AppendRequest(nil, req, 0)); err != nil {
		return fmt.Errorf("asking the embedded broker: %w", err)
	}

	var head [8]byte // size, correlation id
	if _, err := io.ReadFull(a.conn, head[:]); err != nil {
		return fmt.Errorf("asking the embedded broker: %w", err)
	}

	body := make([]byte, max(int(binary.BigEndian.Uint32(head[:]))-4, 0))
	if _, err := io.ReadFull(a.conn, body); err != nil {
		return fmt.Errorf("asking the embedded broker: %w", err)
	}

	return res.ReadFrom(body)
}

// offsetAt returns the first offset with a time at or after at, -1 when none
// has.
func (a *rawClient) offsetAt(topic string, partition int32, at time.Time) (int64, error) {
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp, p.CurrentLeaderEpoch = partition, at.UnixMilli(), -1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic, t.Partitions = topic, append(t.Partitions, p)
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID, req.Topics = -1, append(req.Topics, t)
	res := kmsg.NewPtrListOffsetsResponse()
	if err := a.request(req, res); err != nil {
		return 0, err
	}
	if len(res.Topics) != 1 || len(res.Topics[0].Partitions) != 1 {
		return 0, fmt.Errorf("the embedded broker did not answer about %s/%d", topic, partition)
	}

	answer := res.Topics[0].Partitions[0]
	return answer.Offset, kerr.ErrorForCode(answer.ErrorCode)
}

// topics lists all topics.
func (a *rawClient) topics() ([]string, error) {
	req := kmsg.NewPtrMetadataRequest() // no topics named: all
	res := kmsg.NewPtrMetadataResponse()
	if err := a.request(req, res); err != nil {
		return nil, err
	}

	var names []string
	for _, t := range res.Topics {
		if t.Topic != nil {
			names = append(names, *t.Topic)
		}
	}

	return names, nil
}
