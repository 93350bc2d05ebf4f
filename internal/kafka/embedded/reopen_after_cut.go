package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// openAndRepair opens the log. When kfake finds a damaged batch, it truncates the
// segment there but continues at the old length: records written next are acknowledged
// but unreadable until a restart. So if the first open has truncated a segment,
// openAndRepair opens the log again.
func (b *Broker) openAndRepair(open func() error) error {
	sizesBefore, err := fileSizes(b.logDir())
	if err != nil {
		return err
	}

	if err := open(); err != nil {
		return err
	}

	sizesAfter, err := fileSizes(b.logDir())
	if err != nil {
		b.cluster.Close()
		return err
	}

	truncated := false
	for path, size := range sizesBefore {
		newSize, exists := sizesAfter[path]
		if exists && newSize < size && filepath.Ext(path) == segmentSuffix {
			topic, partition := parsePartitionDir(filepath.Base(filepath.Dir(path)))
			b.log.Error("embedded broker: log segment damaged and cut, its later records are lost",
				"topic", topic, "partition", partition, "segment", path, "bytes", size-newSize)
			b.metrics.truncated.Add(float64(size - newSize))
			truncated = true
		}
	}

	if !truncated {
		return nil
	}

	b.cluster.Close()
	return open()
}

// fileSizes returns the sizes of all files below dir.
func fileSizes(dir string) (map[string]int64, error) {
	sizes := map[string]int64{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}

		info, err := entry.Info()
		if err == nil {
			sizes[path] = info.Size()
		}

		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("looking at the embedded broker's log: %w", err)
	}

	return sizes, nil
}

// parsePartitionDir parses the name of a partition's directory.
func parsePartitionDir(dir string) (topic, partition string) {
	i := max(strings.LastIndexByte(dir, '-'), 0)
	topic, err := url.PathUnescape(dir[:i])
	if err != nil {
		topic = dir[:i]
	}
	return topic, strings.TrimPrefix(dir[i:], "-")
}
