package embedded

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"trunkline/internal/kafka"
)

// disk knows what a loss of power leaves of a directory: the content of files, and the names
// in directories, as of their last sync; of what was written since, anything.
type disk struct {
	dir string

	mu      sync.Mutex
	content map[string][]byte          // of files, by path
	names   map[string]map[string]bool // in directories
}

// watchSyncs makes a disk of a broker's directory, which is synced as it is.
func watchSyncs(t *testing.T, b *Broker) *disk {
	d := &disk{dir: b.cfg.Dir, content: map[string][]byte{}, names: map[string]map[string]bool{}}
	err := filepath.WalkDir(d.dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return d.synced(path)
	})
	if err != nil {
		t.Fatal(err)
	}

	b.durability.fsync = func(f *os.File) error { return d.synced(f.Name()) }
	b.durability.syncData = b.durability.fsync
	return d
}

// synced remembers what a file or directory has.
func (d *disk) synced(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()

	info, err := os.Stat(path)
	if err != nil || info.Mode()&(os.ModeSocket|os.ModeNamedPipe) != 0 {
		return err
	}

	if !info.IsDir() {
		d.content[path], err = os.ReadFile(path)
		return err
	}

	entries, err := os.ReadDir(path)
	d.names[path] = map[string]bool{}
	for _, entry := range entries {
		d.names[path][entry.Name()] = true
	}

	return err
}

// losePower writes to a directory what may be left of the disk.
func (d *disk) losePower(t *testing.T, to string, random *rand.Rand) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.leave(t, d.dir, to, random)
}

func (d *disk) leave(t *testing.T, dir, to string, random *rand.Rand) {
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}

	present := map[string]bool{} // and whether a loss of power cannot undo that
	for _, entry := range entries {
		isOurs := !strings.HasSuffix(entry.Name(), ".json") // kfake replaces these at once
		present[entry.Name()] = !isOurs || d.names[dir][entry.Name()]
	}

	var deleted []string
	for name := range d.names[dir] {
		if _, exists := present[name]; !exists {
			deleted = append(deleted, name)
		}
	}

	// The oldest segments are deleted first, and file systems keep the order of deletions.
	slices.SortFunc(deleted, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	for _, name := range deleted[random.IntN(len(deleted)+1):] {
		present[name] = true
	}

	if err := os.MkdirAll(to, 0o755); err != nil {
		t.Fatal(err)
	}

	for name, certain := range present {
		path := filepath.Join(dir, name)
		if name == socketName || name == lockName || !certain && random.IntN(2) == 0 {
			continue
		}

		info, err := os.Stat(path)
		if err == nil && info.IsDir() || d.names[path] != nil {
			d.leave(t, path, filepath.Join(to, name), random)
			continue
		}

		now, err := os.ReadFile(path)
		if err != nil {
			now = d.content[path]
		}

		left := now
		if !strings.HasSuffix(name, ".json") && name != "groups.log" && name != "pids.log" {
			left = leftOf(d.content[path], now, random)
		}
		if err := os.WriteFile(filepath.Join(to, name), left, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// leftOf returns what may be left of a file: of each sector, what was written since is
// there, or not, or is garbage, and the file may end anywhere after its old end.
func leftOf(synced, now []byte, random *rand.Rand) []byte {
	const sector = 512
	if len(now) < len(synced) { // cut, and that is not synced
		return [][]byte{synced, now}[random.IntN(2)]
	}

	left := append([]byte(nil), now[:len(synced)+random.IntN(len(now)-len(synced)+1)]...)
	kind := 0
	for i := range left {
		if i%sector == 0 {
			kind = random.IntN(3)
		}

		isOld := i < len(synced)
		switch {
		case isOld && synced[i] == now[i] || kind == 0:
		case isOld && kind == 1:
			left[i] = synced[i]
		default:
			left[i] = byte(random.Uint32())
		}
	}

	return left
}

// writtenBatch is a batch that a writer had acknowledged.
type writtenBatch struct {
	offset int64
	size   int
}

// writer writes batches to one partition, one after the other.
type writer struct {
	partition int32
	mu        sync.Mutex
	written   []writtenBatch
}

func (w *writer) acknowledged() []writtenBatch {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.written[:len(w.written):len(w.written)]
}

func (w *writer) run(t *testing.T, b *Broker, bytes, most int, stop <-chan struct{}) {
	random := rand.New(rand.NewPCG(uint64(w.partition), 1))
	a, err := b.newRawClient(t.Context())
	if err != nil {
		t.Error(err)
		return
	}
	defer a.close()

	for bytes > 0 {
		select {
		case <-stop:
			return
		default:
		}

		size := 1 + random.IntN(most)
		bytes -= size
		rp := kmsg.NewProduceRequestTopicPartition()
		rp.Partition, rp.Records = w.partition, oneRecord(size)
		rt := kmsg.NewProduceRequestTopic()
		rt.Topic, rt.Partitions = "t", append(rt.Partitions, rp)
		req := kmsg.NewPtrProduceRequest()
		req.Acks, req.TimeoutMillis, req.Topics = -1, 1000, append(req.Topics, rt)
		res := kmsg.NewPtrProduceResponse()
		if err := a.request(req, res); err != nil {
			t.Error(err)
			return
		}

		answer := res.Topics[0].Partitions[0]
		if err := kerr.ErrorForCode(answer.ErrorCode); err != nil {
			t.Error(err)
			return
		}

		w.mu.Lock()
		w.written = append(w.written, writtenBatch{answer.BaseOffset, size})
		w.mu.Unlock()
	}
}

// TestPowerLossKeepsWhatWasAcknowledged writes to several partitions, and opens what a loss of
// power at many moments would leave: every acknowledged batch has its offset, its bytes and
// its entry in the index.
func TestPowerLossKeepsWhatWasAcknowledged(t *testing.T) {
	const partitions = 4
	for name, test := range map[string]struct {
		maxBytes   int64
		bytes      int // written to each partition
		largest    int // bytes of a batch
		every      int // batches between two losses of power
		everything bool
	}{
		"files of the journal filled often": {2 << 20, 256 << 10, 3000, 30, true},
		"batches larger than the journal":   {8 << 20, 1 << 20, 400 << 10, 1, true},
		"trimmed meanwhile":                 {2 << 20, 2 << 20, 20 << 10, 50, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := openBroker(t, Config{MaxBytes: test.maxBytes})
			if err := b.cluster.CreateTopic("t", partitions, nil); err != nil {
				t.Fatal(err)
			}

			d := watchSyncs(t, b)

			stop, done := make(chan struct{}), make(chan struct{})
			var running sync.WaitGroup

			writers := make([]*writer, partitions)
			for p := range writers {
				w := &writer{partition: int32(p)}
				writers[p] = w
				running.Go(func() { w.run(t, b, test.bytes, test.largest, stop) })
			}

			go func() {
				running.Wait()
				close(done)
			}()
			defer running.Wait()
			defer close(stop)

			type image struct {
				dir          string
				acknowledged [][]writtenBatch
			}
			var images []image

			for finished := false; !finished; {
				select {
				case <-done:
					finished = true
				default:
				}

				i := image{dir: filepath.Join(t.TempDir(), "left")}
				total := 0
				for _, w := range writers {
					i.acknowledged = append(i.acknowledged, w.acknowledged())
					total += len(i.acknowledged[w.partition])
				}

				if finished || total >= test.every*len(images) {
					d.losePower(t, i.dir, rand.New(rand.NewPCG(uint64(len(images)), 2)))
					images = append(images, i)
				}
			}

			for n, i := range images {
				checkAfterPowerLoss(t, i.dir, i.acknowledged, test.everything)
				if t.Failed() {
					t.Fatalf("image %d of %d", n, len(images))
				}
			}
		})
	}
}

func checkAfterPowerLoss(t *testing.T, dir string, acknowledged [][]writtenBatch, everything bool) {
	t.Helper()
	b, err := Open(Config{Dir: dir}, quiet()) // it does not trim
	if err != nil {
		t.Error(err)
		return
	}
	defer b.Close()

	for p, want := range acknowledged {
		info := b.cluster.PartitionInfo("t", int32(p))
		if info == nil {
			t.Error("the topic is gone")
			return
		}
		if everything && info.LogStartOffset != 0 && len(want) > 0 {
			t.Errorf("partition %d begins at %d", p, info.LogStartOffset)
		}

		found := map[int64]int{}
		err := b.client.Scan(t.Context(), "t", p, info.LogStartOffset, info.HighWatermark,
			func(r *kafka.Record) { found[r.Offset] = len(r.Value) })
		if err != nil {
			t.Errorf("reading partition %d: %v", p, err)
		}

		for _, batch := range want {
			if batch.offset >= info.LogStartOffset && found[batch.offset] != batch.size {
				t.Errorf("partition %d has [%d, %d): %d bytes at offset %d, want %d", p, info.LogStartOffset,
					info.HighWatermark,
					found[batch.offset], batch.offset, batch.size)
				return
			}
		}

		n := len(want)
		if n > 0 && info.HighWatermark <= want[n-1].offset {
			t.Errorf("partition %d ends at %d, before the last batch, %d", p, info.HighWatermark, want[n-1].offset)
		}
		if err := checkIndex(filepath.Join(b.logDir(), "partitions", fmt.Sprintf("t-%d", p))); err != nil {
			t.Error(err)
		}
	}
}

// checkIndex returns an error unless the indexes of a partition have the leader epoch of each
// batch.
func checkIndex(dir string) error {
	bases, err := segmentBases(dir)
	if err != nil && !os.IsNotExist(err) {
		return err
	}

	for _, base := range bases {
		segment, err := os.ReadFile(filepath.Join(dir, segmentName(base)))
		if err != nil {
			return err
		}

		index, err := os.ReadFile(filepath.Join(dir, indexName(base)))
		if err != nil && !os.IsNotExist(err) { // it has no batch
			return err
		}

		n := parseBatches(segment, len(segment)).count
		if n*indexEntrySize != len(index) {
			return fmt.Errorf("%s/%d has %d batches, and an index of %d bytes", dir, base, n, len(index))
		}

		for len(index) > 0 {
			batch, entry := binary.BigEndian.Uint32(segment[12:]), binary.LittleEndian.Uint32(index[2:])
			if batch != entry {
				return fmt.Errorf("%s/%d has a batch of epoch %d, its index says %d", dir, base, batch, entry)
			}
			segment, index = segment[parseBatches(segment, 1).size:], index[indexEntrySize:]
		}
	}

	return nil
}
