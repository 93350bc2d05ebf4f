package kafka_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"trunkline/event/topics"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/embedded"
)

// peakMemory returns the most memory that this process has used, in bytes.
func peakMemory(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("only Linux tells")
	}

	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	field := strings.Fields(rest)
	kib, err := strconv.ParseInt(field[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}

	return kib << 10
}

// A few kilobytes of compressed records unpacked to 64 MiB a batch, and all
// batches of a response were held at once. The process that reads them is one
// of its own, so that its memory is that of reading.
func TestCompressedRecordsTakeBoundedMemory(t *testing.T) {
	if address := os.Getenv("TRUNKLINE_KAFKA_TEST_UNPACK"); address != "" {
		unpackAll(t, address)
		return
	}

	for name, codec := range map[string]kgo.CompressionCodec{
		"gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(),
		"zstd": kgo.ZstdCompression(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := embedded.Open(embedded.Config{Dir: t.TempDir(), ListenTCP: "127.0.0.1:0"}, quiet())
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()

			address := b.TCPAddr().String()
			dial := kafka.Config{Settings: kafka.DefaultSettings(embedded.Address), Dial: b.Dial}
			c, err := kafka.Open(t.Context(), dial, nil, quiet())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()

			ensure(t, c, topics.Spec{Name: "t", Partitions: 1,
				Config: map[string]string{"max.message.bytes": strconv.Itoa(8 << 20)}})
			client := franz(t, b, kgo.ProducerBatchCompression(codec), kgo.RecordPartitioner(kgo.ManualPartitioner()),
				kgo.ProducerBatchMaxBytes(8<<20), kgo.MaxBufferedBytes(1<<30))
			value := make([]byte, unpackValue)

			for range unpackBatches {
				records := make([]*kgo.Record, unpackRecords)
				for i := range records {
					records[i] = &kgo.Record{Topic: "t", Value: value}
				}

				if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
					t.Fatal(err)
				}
			}

			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCompressedRecordsTakeBoundedMemory$",
				"-test.v")

			// GOGC: what is measured is what is held, with little garbage beside it.
			cmd.Env = append(os.Environ(), "TRUNKLINE_KAFKA_TEST_UNPACK="+address, "GOGC=25")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}

			t.Logf("%s", bytes.TrimSpace(out))
		})
	}
}

// The records together are so large that holding them all would exceed
// unpackLimit, also with what the race detector adds to a process.
const (
	unpackBatches, unpackRecords, unpackValue = 12, 24, 1 << 20
	unpackLimit                               = unpackBatches * unpackRecords * unpackValue / 2
)

func unpackAll(t *testing.T, address string) {
	before := peakMemory(t)
	c, err := kafka.Open(t.Context(), kafka.Config{Settings: kafka.DefaultSettings(address)}, nil, quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()

	const want = unpackBatches * unpackRecords
	r := c.NewReader("t", 0, 0)
	defer r.Close()

	for n := int64(0); n < want; {
		records, err := r.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		for i := range records {
			if records[i].Offset != n || len(records[i].Value) != unpackValue {
				t.Fatalf("offset %d with %d bytes, want %d", records[i].Offset, len(records[i].Value), n)
			}
			n++
		}
	}

	if used := peakMemory(t) - before; used > unpackLimit {
		t.Errorf("%d MiB of memory", used>>20)
	} else {
		t.Logf("%d MiB of memory for %d MiB of records", used>>20, want*unpackValue>>20)
	}
}

// Small records of large compressed batches come in several Reads.
func TestLargeCompressedBatchesComeWhole(t *testing.T) {
	c, b := openBoth(t)
	for name, codec := range map[string]kgo.CompressionCodec{
		"gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(),
		"zstd": kgo.ZstdCompression(),
	} {
		t.Run(name, func(t *testing.T) {
			ensure(t, c, topics.Spec{Name: name, Partitions: 1})
			client := franz(t, b, kgo.ProducerBatchCompression(codec), kgo.RecordPartitioner(kgo.ManualPartitioner()),
				kgo.MaxBufferedRecords(100_000))
			const n = 20_000
			done := make(chan error, 1)

			for i := range n {
				client.Produce(t.Context(),
					&kgo.Record{Topic: name, Key: fmt.Append(nil, i), Value: bytes.Repeat([]byte{byte(i)}, i%700),
						Headers: []kgo.RecordHeader{{Key: "n", Value: fmt.Append(nil, i)}}},
					func(_ *kgo.Record, err error) {
						if err != nil {
							select {
							case done <- err:
							default:
							}
						}
					})
			}

			if err := client.Flush(context.Background()); err != nil {
				t.Fatal(err)
			}

			for _, from := range []int64{0, 1, n / 2, n - 1} {
				r := c.NewReader(name, 0, from)
				for next := from; next < n; {
					records, err := r.Read(t.Context())
					if err != nil {
						t.Fatal(err)
					}

					for i := range records {
						g := &records[i]
						if g.Offset != next || string(g.Key) != fmt.Sprint(next) || len(g.Value) != int(next%700) ||
							string(g.Header("n")) != fmt.Sprint(next) ||
							len(g.Value) > 0 && g.Value[len(g.Value)-1] != byte(next) {
							t.Fatalf("offset %d with key %s, want %d", g.Offset, g.Key, next)
						}

						next++
					}
				}

				r.Close()
			}
		})
	}
}
