package embedded

import (
	"hash/crc32"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// oneRecord returns a record batch with one record of size bytes, stamped now.
func oneRecord(size int) []byte {
	r := kmsg.Record{Value: make([]byte, size)}
	r.Length = int32(len(r.AppendTo(nil)) - 1) // a length of 0 takes one byte
	now := time.Now().UnixMilli()
	b := kmsg.RecordBatch{
		Magic: 2, PartitionLeaderEpoch: -1, NumRecords: 1, FirstTimestamp: now, MaxTimestamp: now,
		ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, Records: r.AppendTo(nil),
	}
	b.Length = int32(len(b.AppendTo(nil)) - 12)
	b.CRC = int32(crc32.Checksum(b.AppendTo(nil)[21:], crc32.MakeTable(crc32.Castagnoli)))

	return b.AppendTo(nil)
}
