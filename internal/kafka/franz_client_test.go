package kafka_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"trunkline/event/topics"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/embedded"
)

// franz returns the other client, on the same broker.
func franz(t testing.TB, b *embedded.Broker, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(embedded.Address), kgo.Dialer(b.Dial))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func openBoth(t testing.TB) (*kafka.Cluster, *embedded.Broker) {
	t.Helper()
	b := openEmbedded(t, t.TempDir())
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})

	c, err := kafka.Open(t.Context(), kafka.Config{Settings: kafka.DefaultSettings(embedded.Address), Dial: b.Dial},
		nil, quiet())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(c.Close)
	return c, b
}

func TestReaderUnpacksEveryCodec(t *testing.T) {
	c, b := openBoth(t)
	for name, codec := range map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	} {
		t.Run(name, func(t *testing.T) {
			ensure(t, c, topics.Spec{Name: name, Partitions: 1})
			client := franz(t, b, kgo.ProducerBatchCompression(codec), kgo.RecordPartitioner(kgo.ManualPartitioner()))
			const n = 500

			for batch := range 5 {
				var records []*kgo.Record
				for i := range n {
					records = append(records,
						&kgo.Record{Topic: name, Key: fmt.Append(nil, batch*n+i),
							Value:   bytes.Repeat([]byte{byte(i)}, i),
							Headers: []kgo.RecordHeader{{Key: "format", Value: []byte(name)}}})
				}

				if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
					t.Fatal(err)
				}
			}

			got := readAll(t, c, name, 0, 0)
			if len(got) != 5*n {
				t.Fatalf("%d records", len(got))
			}

			for i, r := range got {
				if string(r.Key) != fmt.Sprint(i) || len(r.Value) != i%n ||
					len(r.Value) > 0 && r.Value[0] != byte(i%n) || string(r.Header("format")) != name {
					t.Fatalf("record %d: key %s", i, r.Key)
				}
			}
		})
	}
}

func TestFranzConsumesWhatWeProduce(t *testing.T) {
	c, b := openBoth(t)
	ensure(t, c, topics.Spec{Name: "t", Partitions: 1})

	sent := numbered(0, 0, 1000)
	for i := range sent {
		sent[i].Headers = []kafka.Header{{Key: "n", Value: sent[i].Value}, {Key: "nil"}}
	}

	produce(t, c, sent...)
	client := franz(t, b, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t": {0: kgo.NewOffset().AtStart()}}))
	for i := 0; i < len(sent); {
		fetches := client.PollFetches(t.Context())
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}

		fetches.EachRecord(func(r *kgo.Record) {
			if string(r.Value) != string(sent[i].Value) || len(r.Headers) != 2 ||
				string(r.Headers[0].Value) != string(r.Value) || r.Headers[1].Value != nil {
				t.Fatalf("record %d: %s", i, r.Value)
			}
			i++
		})
	}
}

func TestReaderLeavesOutAbortedTransactions(t *testing.T) {
	c, b := openBoth(t)
	ensure(t, c, topics.Spec{Name: "t", Partitions: 1})
	transact := func(id, value string, commit kgo.TransactionEndTry) {
		t.Helper()
		client := franz(t, b, kgo.TransactionalID(id), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if err := client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}

		for i := range 3 {
			if err := client.ProduceSync(t.Context(),
				&kgo.Record{Topic: "t", Value: fmt.Appendf(nil, "%s%d", value, i)}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}

		if err := client.EndTransaction(t.Context(), commit); err != nil {
			t.Fatal(err)
		}
	}

	transact("a", "yes", kgo.TryCommit)
	transact("b", "no", kgo.TryAbort)
	produce(t, c, kafka.Record{Topic: "t", Value: []byte("plain")})
	transact("b", "again", kgo.TryCommit) // the same producer, after its abort
	transact("c", "never", kgo.TryAbort)
	var got []string

	for _, r := range readAll(t, c, "t", 0, 0) {
		got = append(got, string(r.Value))
	}

	if want := "[yes0 yes1 yes2 plain again0 again1 again2]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %v", got, want)
	}

	// The log ends with three aborted records and markers.
	last, err := c.LastRecord(t.Context(), "t", 0)
	if err != nil || last == nil || string(last.Value) != "again2" {
		t.Errorf("last %v, %v", last, err)
	}
}
