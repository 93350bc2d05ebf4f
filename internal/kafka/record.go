package kafka

import "trunkline/internal/kafka/wire"

// AnyPartition lets the producer choose the partition: by key, as the Java client
// does, or any partition for a record without a key.
const AnyPartition = -1

// Record is a record to produce, or one that was read.
type Record = wire.Record

// Header is one header of a record.
type Header = wire.Header
