package kafka

import (
	"bytes"
	"crypto/rand"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"trunkline/event/topics"
)

func TestCompressedBatchesAreReadBack(t *testing.T) {
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()

	var next int64
	for _, compression := range []string{"none", "lz4", "zstd"} {
		settings := DefaultSettings(fake.ListenAddrs()...)
		settings.Compression = compression
		c, err := Open(t.Context(), Config{Settings: settings}, nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()

		before := fake.PartitionInfo("t", 0).NumBytes
		value := strings.Repeat("the same again ", 400)
		p := c.NewProducer(ProducerConfig{})

		for _, v := range []string{value, "short"} {
			if err := p.Produce(t.Context(), Record{Topic: "t", Key: []byte("k"), Value: []byte(v)},
				Record{Topic: "t", Key: []byte("k"), Value: []byte(v)}); err != nil {
				t.Fatal(err)
			}
		}

		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if size := fake.PartitionInfo("t", 0).NumBytes - before; (compression == "none") != (size > int64(len(value))) {
			t.Errorf("%s: %d bytes in the log", compression, size)
		}

		r := c.NewReader("t", 0, next)
		for read := 0; read < 4; {
			records, err := r.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			for _, record := range records {
				if want := value; read < 2 && string(record.Value) != want ||
					read >= 2 && string(record.Value) != "short" {
					t.Errorf("%s: record %d has %d bytes", compression, read, len(record.Value))
				}
				read++
			}
		}

		next = r.Next()
		r.Close()
	}
}

// A compressed batch that its topic refuses for its size is divided like any
// other: the records that fit one by one are stored.
func TestACompressedBatchIsDivided(t *testing.T) {
	for _, compression := range []string{"none", "lz4", "zstd"} {
		fake, err := kfake.NewCluster(kfake.NumBrokers(1))
		if err != nil {
			t.Fatal(err)
		}
		defer fake.Close()

		settings := DefaultSettings(fake.ListenAddrs()...)
		settings.Compression = compression
		c, err := Open(t.Context(), Config{Settings: settings}, nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()

		const records, limit = 16, 8 << 10
		if err := c.EnsureTopics(t.Context(),
			[]topics.Spec{{Name: "t", Partitions: 1,
				Config: map[string]string{"max.message.bytes": strconv.Itoa(limit)}}}); err != nil {
			t.Fatal(err)
		}

		var sent []Record
		for n := range records {
			noise := make([]byte, limit/4)
			rand.Read(noise) // compression must not make them fit together
			sent = append(sent,
				Record{Topic: "t", Key: []byte{byte(n)}, Value: append(noise, strings.Repeat("again ", limit/24)...)})
		}

		p := c.NewProducer(ProducerConfig{})
		if err := p.Produce(t.Context(), sent...); err != nil {
			t.Fatalf("%s: %v", compression, err)
		}
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}

		r := c.NewReader("t", 0, 0)
		for read := 0; read < records; {
			got, err := r.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			for _, record := range got {
				if !bytes.Equal(record.Key, sent[read].Key) || !bytes.Equal(record.Value, sent[read].Value) {
					t.Errorf("%s: record %d is another one", compression, read)
				}
				read++
			}
		}

		r.Close()
	}
}
