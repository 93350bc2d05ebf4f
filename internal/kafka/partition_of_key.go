package kafka

// PartitionOf returns the partition of a key by the Java client's default partitioner,
// so that all records of an account are in one partition, whichever client wrote them.
func PartitionOf(key []byte, partitions int) int {
	return int(murmur2(key)&0x7fffffff) % partitions
}

// murmur2 is Austin Appleby's hash with the seed Kafka uses.
func murmur2(data []byte) uint32 {
	const (
		seed = 0x9747b28c
		m    = 0x5bd1e995
		r    = 24
	)
	h := seed ^ uint32(len(data))

	for ; len(data) >= 4; data = data[4:] {
		k := uint32(data[0]) | uint32(data[1])<<8 | uint32(data[2])<<16 | uint32(data[3])<<24
		k *= m
		k ^= k >> r
		k *= m
		h = h*m ^ k
	}

	switch len(data) {
	case 3:
		h ^= uint32(data[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(data[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(data[0])) * m
	}

	h = (h ^ h>>13) * m
	return h ^ h>>15
}
