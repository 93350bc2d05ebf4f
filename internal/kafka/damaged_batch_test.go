package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"trunkline/internal/kafka"
)

// A batch that the broker itself cannot read was fetched again and again.
func TestDamageThatTheBrokerFindsIsSteppedOver(t *testing.T) {
	for _, damaged := range [][2]int64{{5, 12}, {5, 6}, {0, 20}, {19, 20}} {
		t.Run(fmt.Sprint(damaged), func(t *testing.T) {
			c, fake, _ := openFakeWith(t, 1)
			for i := range 20 {
				produce(t, c, numbered(0, i, 1)...)
			}

			onFetch(fake, func(req *kmsg.FetchRequest) kmsg.Response {
				for _, topic := range req.Topics {
					for _, p := range topic.Partitions {
						if p.FetchOffset >= damaged[0] && p.FetchOffset < damaged[1] {
							res := req.ResponseKind().(*kmsg.FetchResponse)
							out := kmsg.NewFetchResponseTopicPartition()
							out.ErrorCode, out.RecordBatches = kerr.CorruptMessage.Code, []byte{}
							in := kmsg.NewFetchResponseTopic()
							in.TopicID, in.Partitions = topic.TopicID, append(in.Partitions, out)
							res.Topics = append(res.Topics, in)

							return res
						}
					}
				}

				return nil
			})

			r := c.NewReader("t", 0, damaged[0])
			defer r.Close()

			for range 2 {
				_, err := r.Read(t.Context())
				wantGap(t, err, kafka.GapDamaged, damaged[1])
			}
		})
	}
}

// damagedWire flips a byte in fetch responses while there are flips left.
type damagedWire struct {
	net.Conn
	flips  *atomic.Int32
	before int // the byte flipped lies that far before the value
}

func (d *damagedWire) Read(p []byte) (int, error) {
	n, err := d.Conn.Read(p)
	// Values are runs of 'x' that nothing else has.
	for i := range n - 8 {
		if string(p[i:i+8]) == "xxxxxxxx" && i >= d.before && d.flips.Add(-1) >= 0 {
			p[i-d.before] ^= 1
			break
		}
	}
	return n, err
}

func TestDamagedBatchIsReadAgainAndThenReported(t *testing.T) {
	_, fake, _ := openFake(t)
	var flips atomic.Int32
	c, err := kafka.Open(t.Context(), kafka.Config{
		Settings: kafka.DefaultSettings(fake.ListenAddrs()...),
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			return &damagedWire{conn, &flips, 0}, err
		},
	}, nil, quiet())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(c.Close)
	produce(t, c, numbered(0, 0, 5)...)
	produce(t, c, kafka.Record{Topic: "t", Value: []byte("xxxxxxxxxxxxxxxxxxxxxxx")}, kafka.Record{Topic: "t"})
	produce(t, c, numbered(0, 7, 1)...)

	flips.Store(1)
	if got := readAll(t, c, "t", 0, 0); len(got) != 8 {
		t.Errorf("damaged on its way once: %d records", len(got))
	}

	flips.Store(1000)
	r := c.NewReader("t", 0, 0)
	defer r.Close()

	before, err := r.Read(t.Context())
	if err != nil || len(before) != 5 {
		t.Fatalf("what lies before the damage: %d records, %v", len(before), err)
	}

	_, err = r.Read(t.Context())
	damage, ok := kafka.PassableGap(err)
	if !ok || damage.Kind != kafka.GapDamaged || damage.Topic != "t" || damage.Partition != 0 || damage.Offset != 5 ||
		damage.Resume != 7 {
		t.Fatalf("got %v", err)
	}
	if _, err := r.Read(t.Context()); !errors.As(err, &damage) || damage.Resume != 7 {
		t.Errorf("asked again: %v", err)
	}

	past := c.NewReader("t", 0, damage.Resume)
	defer past.Close()

	if after, err := past.Read(t.Context()); err != nil || len(after) != 1 ||
		string(after[0].Value) != strconv.Itoa(7) {
		t.Errorf("past the damage: %v, %v", after, err)
	}
}

// Where the header of a batch is damaged too, its length is not known. The
// reader finds where the log continues, so that a consumer is not blocked for ever.
func TestTheEndOfABatchWithADamagedHeaderIsFound(t *testing.T) {
	_, fake, _ := openFake(t)

	var flips atomic.Int32
	const magicBeforeValue = 51 // of a batch's first record without a key
	c, err := kafka.Open(t.Context(), kafka.Config{
		Settings: kafka.DefaultSettings(fake.ListenAddrs()...),
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			return &damagedWire{conn, &flips, magicBeforeValue}, err
		},
	}, nil, quiet())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(c.Close)
	damaged := []kafka.Record{{Topic: "t", Value: []byte("xxxxxxxxxxxxxxxxxxxxxxx")}}
	for range 40 {
		damaged = append(damaged, kafka.Record{Topic: "t"})
	}

	produce(t, c, numbered(0, 0, 5)...)
	produce(t, c, damaged...)
	produce(t, c, numbered(0, 46, 3)...)
	flips.Store(1 << 20)

	for _, from := range []int64{0, 5, 20} {
		r := c.NewReader("t", 0, from)
		defer r.Close()

		if from == 0 {
			if before, err := r.Read(t.Context()); err != nil || len(before) != 5 {
				t.Fatalf("what lies before the damage: %d records, %v", len(before), err)
			}
		}

		_, err := r.Read(t.Context())
		if gap, ok := kafka.PassableGap(err); !ok || gap.Kind != kafka.GapDamaged || gap.Offset != max(from, 5) ||
			gap.Resume != 46 {
			t.Errorf("from %d: %v", from, err)
		}
	}
}
