package embedded

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// segmentSizes returns the size of every segment file by path.
func segmentSizes(dir string) (map[string]int64, error) {
	sizes := map[string]int64{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != segmentSuffix {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		sizes[path] = info.Size()
		return nil
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("listing the embedded broker's log: %w", err)
	}
	return sizes, nil
}

// reportTruncated logs and counts what kfake has cut from segments since
// before: it drops a batch that is damaged or incomplete, and all that follows
// in its segment. A process that is killed while it appends leaves an
// incomplete batch, which nobody was told is durable; more is a loss.
func (b *Broker) reportTruncated(before map[string]int64) error {
	after, err := segmentSizes(b.logDir())
	if err != nil {
		return err
	}
	for path, size := range before {
		cut := size - after[path]
		if cut <= 0 {
			continue
		}
		b.metrics.truncated.Add(float64(cut))
		name := filepath.Base(filepath.Dir(path))
		topic, number, _ := cutLast(name, "-")
		if unescaped, err := url.PathUnescape(topic); err == nil {
			topic = unescaped
		}
		b.log.Error("embedded broker: damaged end of a log segment dropped at start", "topic", topic, "partition", number,
			"segment", strings.TrimSuffix(filepath.Base(path), segmentSuffix), "bytes_dropped", cut, "bytes_kept", after[path])
	}
	return nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
