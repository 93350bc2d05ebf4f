package wire

import (
	"bytes"
	"fmt"
	"io"

	"github.com/segmentio/kafka-go/compress"
)

// minCompressedBytes is the size in bytes below which the records of a batch are not
// compressed.
const minCompressedBytes = 1 << 10

var codecs = map[string]compress.Codec{
	"": nil, "none": nil, "lz4": compress.Lz4.Codec(), "zstd": compress.Zstd.Codec(),
}

// Compress replaces the records of a complete batch by their compressed form if that
// is smaller. The codec is none, lz4 or zstd.
func (b *BatchBuilder) Compress(codec string) error {
	c, records := codecs[codec], b.encodedRecords()
	if c == nil || len(records) < minCompressedBytes {
		return nil
	}

	var compressed bytes.Buffer
	compressed.Grow(len(records) / 2)
	w := c.NewWriter(&compressed)
	_, err := w.Write(records)
	if err != nil {
		return err
	}

	if err := w.Close(); err != nil {
		return err
	}
	if compressed.Len() < len(records) {
		b.Encoded = append(b.Encoded[:b.prefix+BatchHeaderBytes], compressed.Bytes()...)
		b.codec = c.Code()
	}

	return nil
}

// encodedRecords returns the encoded records.
func (b *BatchBuilder) encodedRecords() []byte { return b.Encoded[b.prefix+BatchHeaderBytes:] }

// uncompressedRecords returns the encoded, uncompressed records of a complete batch.
func (b *BatchBuilder) uncompressedRecords() ([]byte, error) {
	if b.codec == 0 {
		return b.encodedRecords(), nil
	}

	r := compress.Codecs[b.codec].NewReader(bytes.NewReader(b.encodedRecords()))
	defer r.Close()

	records, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("decompressing a batch to divide it: %w", err)
	}

	return records, nil
}
