package kafka

import (
	"bytes"
	"fmt"
	"io"

	"github.com/segmentio/kafka-go/compress"
)

// minCompressed is the size in bytes below which the records of a batch are not
// compressed.
const minCompressed = 1 << 10

var codecs = map[string]compress.Codec{
	"": nil, "none": nil, "lz4": compress.Lz4.Codec(), "zstd": compress.Zstd.Codec(),
}

// compress replaces the records of a complete batch by their compressed form if that
// is smaller. prefix is the length of the request before the batch.
func (b *batch) compress(prefix int, codec compress.Codec) error {
	records := b.frame[prefix+batchOverhead:]
	if codec == nil || len(records) < minCompressed {
		return nil
	}
	var packed bytes.Buffer
	packed.Grow(len(records) / 2)
	w := codec.NewWriter(&packed)
	if _, err := w.Write(records); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if packed.Len() < len(records) {
		b.frame = append(b.frame[:prefix+batchOverhead], packed.Bytes()...)
		b.codec = codec.Code()
	}
	return nil
}

// uncompressed returns the encoded, uncompressed records of a complete batch.
func (b *batch) uncompressed(prefix int) ([]byte, error) {
	records := b.frame[prefix+batchOverhead:]
	if b.codec == 0 {
		return records, nil
	}
	r := compress.Codecs[b.codec].NewReader(bytes.NewReader(records))
	defer r.Close()
	unpacked, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("unpacking a batch to divide it: %w", err)
	}
	return unpacked, nil
}
