package embedded

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"

	"trunkline/internal/kafka"
)

// TestTheFirstBatchesOfAPartitionSurviveTheCreationOfAnother: a request comes to a partition
// without files, another topic is created, and a second request comes when the first one's
// batch is appended, but not synced.
func TestTheFirstBatchesOfAPartitionSurviveTheCreationOfAnother(t *testing.T) {
	l := newBareLog(t)
	finishFirst := l.begin()
	if err := l.syncTopics(); err != nil {
		t.Fatal(err)
	}

	l.append(0, 100)
	finishSecond := l.begin()
	l.append(1, 100)
	finishFirst()
	finishSecond()
	l.expectDurable()
}

// TestBatchesOfATopicThatWasCreatedAgainAreDurable: what is known of the files of a deleted topic
// is not taken for those of its successor, whichever of them a round finds.
func TestBatchesOfATopicThatWasCreatedAgainAreDurable(t *testing.T) {
	for name, between := range map[string]func(l *bareLog){
		"whose files are open":   func(*bareLog) {},
		"whose files are closed": func(l *bareLog) { l.logs[l.topic].close() },
		"that an earlier process wrote": func(l *bareLog) {
			clear(l.logs)
			clear(l.unsynced)
			_ = l.begin()
		},
		"whose last batch no round has read": func(l *bareLog) {
			_ = l.begin()
			l.append(1, 100)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newBareLog(t)
			finish := l.begin()
			l.append(0, 100)
			finish()
			if err := l.syncUnsynced(); err != nil {
				t.Fatal(err)
			}

			between(l)
			l.deleteTopic()
			finish = l.begin()
			for offset := range int64(3) {
				l.append(offset, 100)
			}

			finish()
			l.expectDurable()

			if err := l.syncUnsynced(); err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{l.path(), filepath.Dir(l.path())} {
				if !slices.Contains(l.synced, path) {
					t.Errorf("%s was not synced, only %q", path, l.synced)
				}
			}
		})
	}
}

// TestATopicIsCreatedAgainDuringACheckpoint: what syncs the files of the deleted one knows nothing of those of the
// new one.
func TestATopicIsCreatedAgainDuringACheckpoint(t *testing.T) {
	l := newBareLog(t)
	finish := l.begin()
	l.append(0, 100)
	finish()

	syncing, proceed := make(chan struct{}), make(chan struct{})
	hook := l.fsync
	first := true
	l.fsync = func(f *os.File) error {
		if first {
			first = false
			close(syncing)
			<-proceed
		}
		return hook(f)
	}

	if err := l.startCheckpoint(); err != nil {
		t.Fatal(err)
	}
	<-syncing

	before := l.logs[l.topic]
	l.deleteTopic()
	finish = l.begin()
	l.append(0, 200)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		finish()
	}()

	for isReplaced := false; !isReplaced; {
		l.mu.Lock()
		isReplaced = l.logs[l.topic] != before
		l.mu.Unlock()
	}
	close(proceed)
	<-finished

	l.expectDurable()
	if err := l.syncUnsynced(); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(l.synced, filepath.Dir(l.path())) || !slices.Contains(l.synced, l.path()) {
		t.Errorf("synced are only %q", l.synced)
	}
}

// TestADeletedTopicLeavesNothingInTheJournal: the files of its successor may have other names,
// and would be read together with those that a replay restores.
func TestADeletedTopicLeavesNothingInTheJournal(t *testing.T) {
	l := newBareLog(t)
	finish := l.begin()
	l.append(0, 100)
	finish()

	l.deleteTopic()
	finish = l.begin()
	l.append(0, 200)
	finish()

	content, err := os.ReadFile(filepath.Join(l.dir, journalName(int(l.journal.generation%2))))
	if err != nil {
		t.Fatal(err)
	}
	first, _, ok := parseRecord(content)
	if ok && len(first.content) < 200 {
		t.Errorf("the journal begins with a batch of %d bytes of the deleted topic", len(first.content))
	}
}

// TestTheDeletionOfATopicIsSynced: a loss of power after it would restore the files, which a topic
// of that name would begin with.
func TestTheDeletionOfATopicIsSynced(t *testing.T) {
	l := newBareLog(t)
	finish := l.begin()
	l.append(0, 100)
	finish()
	l.deleteTopic()

	if err := l.syncTopics(); err != nil {
		t.Fatal(err)
	}

	files := slices.Index(l.synced, filepath.Dir(l.path()))
	list := slices.Index(l.synced, filepath.Join(l.durability.dir, "topics.json"))
	if files < 0 || list < files {
		t.Errorf("synced are %q, want the directory of the partitions before the list of topics", l.synced)
	}
}

// recreate deletes a compacted topic and creates it again, and writes records to it.
func recreate(t *testing.T, b *Broker, records ...kafka.Record) {
	t.Helper()
	if b.cluster.TopicInfo("t") != nil {
		if err := b.cluster.DeleteTopic("t"); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.cluster.CreateTopic("t", 1, map[string]string{"cleanup.policy": "compact"}); err != nil {
		t.Fatal(err)
	}

	p := b.client.NewProducer(kafka.ProducerConfig{})
	defer func() { _ = p.Close(t.Context()) }()
	if err := p.Produce(t.Context(), records...); err != nil {
		t.Fatal(err)
	}
}

func keyedRecords(prefix string, n int) (records []kafka.Record) {
	for i := range n {
		records = append(records, kafka.Record{Topic: "t", Key: fmt.Append(nil, prefix, i), Value: []byte(prefix)})
	}
	return records
}

// TestACompactionEndsWithItsTopic: the piece that was read is neither appended to the topic's
// successor, nor are records of that deleted.
func TestACompactionEndsWithItsTopic(t *testing.T) {
	b := openBroker(t, Config{})
	recreate(t, b, keyedRecords("old", 10)...)

	c, err := b.newCompaction(partition{"t", 0})
	if err != nil {
		t.Fatal(err)
	}
	defer c.close(t.Context())

	if err := c.index(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	records, end, err := c.read(t.Context(), 0, 10)
	if err != nil || len(records) != 10 || end != 10 {
		t.Fatalf("read %d records up to %d, %v", len(records), end, err)
	}

	recreate(t, b, keyedRecords("new", 20)...)

	if err := c.appendAgain(t.Context(), records); !errors.Is(err, errTopicDeleted) {
		t.Errorf("the old topic's records are appended to the new one: %v", err)
	}
	if err := c.deleteBefore(end); !errors.Is(err, errTopicDeleted) {
		t.Errorf("the new topic's records are deleted: %v", err)
	}

	info := b.cluster.PartitionInfo("t", 0)
	if info.LogStartOffset != 0 || info.HighWatermark != 20 {
		t.Errorf("the new topic has [%d, %d), want [0, 20)", info.LogStartOffset, info.HighWatermark)
	}
}

// TestTrimmingEndsWithItsTopic: offsets of a topic say nothing about its successor's records.
func TestTrimmingEndsWithItsTopic(t *testing.T) {
	b := openBroker(t, Config{})
	recreate(t, b, keyedRecords("old", 10)...)

	p, err := b.sizedPartition(partition{"t", 0})
	if err != nil {
		t.Fatal(err)
	}

	recreate(t, b, keyedRecords("new", 20)...)
	if err := b.deleteBefore(p, 9); !errors.Is(err, errTopicDeleted) {
		t.Errorf("the new topic's records are deleted: %v", err)
	}

	info := b.cluster.PartitionInfo("t", 0)
	if info.LogStartOffset != 0 {
		t.Errorf("the new topic begins at %d", info.LogStartOffset)
	}
}

// TestTheSizeOfADeletedTopicDoesNotDelayCompaction: a topic that was large when it was compacted
// last says nothing about its successor.
func TestTheSizeOfADeletedTopicDoesNotDelayCompaction(t *testing.T) {
	opened := openBroker(t, Config{})
	// With the smallest segments, and not the one whose compactor runs.
	b := &Broker{cfg: Config{MaxBytes: 1}, cluster: opened.cluster, client: opened.client,
		durability: opened.durability, log: opened.log, compactedBytes: map[partitionID]int64{}}
	recreate(t, b)
	old, err := b.sizedPartition(partition{"t", 0})
	if err != nil {
		t.Fatal(err)
	}
	b.compactedBytes[partitionID{old.id, 0}] = 1 << 40

	var records []kafka.Record
	for range 100 {
		records = append(records, kafka.Record{Topic: "t", Key: []byte("same"), Value: make([]byte, 2000)})
	}

	recreate(t, b, records...)
	if err := b.compactAll(t.Context(), []partition{{"t", 0}}); err != nil {
		t.Fatal(err)
	}

	info := b.cluster.PartitionInfo("t", 0)
	if info.LogStartOffset == 0 {
		t.Errorf("the new topic was not compacted: it has [0, %d)", info.HighWatermark)
	}
}

// TestATopicIsNotDeletedWhileAPieceOfItIsCopied: a copy would go to its successor.
func TestATopicIsNotDeletedWhileAPieceOfItIsCopied(t *testing.T) {
	b := openTopic(t, Config{})
	b.durability.deletionMu.RLock()

	deleted := make(chan error, 1)
	go func() {
		transport := &kafkago.Transport{Dial: b.Dial}
		defer transport.CloseIdleConnections()

		client := &kafkago.Client{Addr: kafkago.TCP(Address), Transport: transport}
		res, err := client.DeleteTopics(t.Context(), &kafkago.DeleteTopicsRequest{Topics: []string{"t"}})
		if err == nil {
			err = res.Errors["t"]
		}
		deleted <- err
	}()

	// A lock that waits keeps out those that come after it.
	for b.durability.deletionMu.TryRLock() {
		b.durability.deletionMu.RUnlock()
		select {
		case err := <-deleted:
			t.Fatalf("the deletion did not wait: %v", err)
		default:
		}
	}

	if b.cluster.TopicInfo("t") == nil {
		t.Error("the topic was deleted")
	}

	b.durability.deletionMu.RUnlock()
	if err := <-deleted; err != nil {
		t.Fatal(err)
	}
	if b.cluster.TopicInfo("t") != nil {
		t.Error("the topic is still there")
	}

	// The connection that deleted no longer holds others up.
	b.durability.deletionMu.Lock()
	defer b.durability.deletionMu.Unlock()
}

// TestAClosedConnectionHoldsNoDeletionUp: one that closes while its deletion is under way.
func TestAClosedConnectionHoldsNoDeletionUp(t *testing.T) {
	b := openTopic(t, Config{})
	ours, theirs := net.Pipe()
	defer ours.Close()

	c := &checkedConn{Conn: theirs, broker: b}

	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TopicNames = []string{"t"}
	req.SetVersion(4)
	frame := kmsg.NewRequestFormatter().AppendRequest(nil, req, 0)
	go func() { _, _ = ours.Write(frame) }()
	if _, err := io.ReadFull(c, make([]byte, len(frame))); err != nil {
		t.Fatal(err)
	}

	if b.durability.deletionMu.TryRLock() {
		t.Fatal("the deletion holds nothing up")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if !b.durability.deletionMu.TryRLock() {
		t.Fatal("the deletion still holds others up")
	}
	b.durability.deletionMu.RUnlock()
}
