package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
)

// repairIndexes writes the index of each segment again whose entries are not those of its
// batches. A crash can leave a batch, which nobody was told of, without its entry; kfake would
// then take the entry of each later batch for that of the one before.
func repairIndexes(logDir string) error {
	dirs, err := filepath.Glob(filepath.Join(logDir, partitionsName, "*"))
	for _, dir := range dirs {
		bases, listErr := segmentBases(dir)
		err = errors.Join(err, listErr)
		for _, base := range bases {
			err = errors.Join(err,
				repairIndex(filepath.Join(dir, segmentName(base)), filepath.Join(dir, indexName(base))))
		}
	}

	if err != nil {
		return fmt.Errorf("repairing the indexes of the log: %w", err)
	}

	return nil
}

func repairIndex(segmentPath, indexPath string) error {
	segment, err := os.ReadFile(segmentPath)
	if err != nil {
		return err
	}

	index, err := os.ReadFile(indexPath)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}

	var rebuilt []byte
	agrees := true
	for n := 0; ; n++ {
		// A batch that is cut off at the end has no entry: kfake truncates it when it opens the log.
		batch := parseBatches(segment, 1)
		if batch.count == 0 {
			break
		}

		entry := indexEntry(segment)
		rebuilt = append(rebuilt, entry[:]...)
		at := n * indexEntrySize
		agrees = agrees && at+indexEntrySize <= len(index) &&
			index[at+1] == byte(crc32.Checksum(index[at+2:at+indexEntrySize], castagnoli)) &&
			binary.LittleEndian.Uint32(index[at+2:]) == binary.LittleEndian.Uint32(entry[2:])
		segment = segment[batch.size:]
	}

	if agrees && len(rebuilt) == len(index) {
		return nil
	}

	return os.WriteFile(indexPath, rebuilt, 0o644)
}

// indexEntry returns the entry that kfake writes for a batch: version 1, the lowest byte of the
// CRC-32C of what follows, the leader epoch, the largest timestamp before the batch, which kfake
// computes again when it opens the log, and 1 if the batch is part of a transaction.
func indexEntry(batch []byte) (entry [indexEntrySize]byte) {
	const epochAt, attributesAt, transactional, control = 12, 22, 1 << 4, 1 << 5
	entry[0] = 1
	binary.LittleEndian.PutUint32(entry[2:], binary.BigEndian.Uint32(batch[epochAt:]))
	attributes := batch[attributesAt]
	if attributes&transactional != 0 && attributes&control == 0 {
		entry[14] = 1
	}
	entry[1] = byte(crc32.Checksum(entry[2:], castagnoli))
	return entry
}
