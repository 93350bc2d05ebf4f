package embedded

import (
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// tryWrite produces one small record and returns why it was not acknowledged.
func tryWrite(t *testing.T, b *Broker, topic string) error {
	t.Helper()
	a, err := b.newRawClient(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()

	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Records = oneRecord(100)
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic, rt.Partitions = topic, append(rt.Partitions, rp)
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis, req.Topics = -1, 1000, append(req.Topics, rt)
	res := kmsg.NewPtrProduceResponse()
	if err := a.request(req, res); err != nil {
		return err
	}

	return kerr.ErrorForCode(res.Topics[0].Partitions[0].ErrorCode)
}

func openTopic(t *testing.T, cfg Config) *Broker {
	t.Helper()
	b := openBroker(t, cfg)
	if err := b.cluster.CreateTopic("t", 1, nil); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestWhatCannotBeSyncedIsNotAcknowledged(t *testing.T) {
	reg := prometheus.NewRegistry()

	b := openTopic(t, Config{Metrics: reg})
	var broken atomic.Bool
	b.durability.syncData = func(f *os.File) error {
		if broken.Load() {
			return syscall.EIO
		}
		return syncData(f)
	}

	if err := tryWrite(t, b, "t"); err != nil || b.Err() != nil {
		t.Fatalf("on a working disk: %v, %v", err, b.Err())
	}

	broken.Store(true)
	for range 10 {
		if err := tryWrite(t, b, "t"); err == nil {
			t.Fatal("a record was acknowledged although its sync failed")
		}
	}

	if !errors.Is(b.Err(), syscall.EIO) {
		t.Errorf("the broker says %v", b.Err())
	}

	// The kernel reports an error once: what was dirty then is lost.
	broken.Store(false)
	if err := tryWrite(t, b, "t"); err == nil {
		t.Error("writes are taken again although a sync had failed")
	}
	if n := testutil.ToFloat64(b.metrics.writable); n != 0 {
		t.Errorf("writable is %v", n)
	}
	if n, err := testutil.GatherAndCount(reg, "trunkline_embedded_broker_sync_failures_total"); n != 1 || err != nil {
		t.Errorf("%d metrics, %v", n, err)
	}
}

func TestAFetchWaitsForTheSyncOfWhatItMayContain(t *testing.T) {
	b := openTopic(t, Config{})
	syncing, proceed := make(chan struct{}, 10), make(chan struct{})
	b.durability.syncData = func(*os.File) error {
		syncing <- struct{}{}
		<-proceed
		return nil
	}

	written := make(chan error, 1)
	go func() { written <- tryWrite(t, b, "t") }()
	<-syncing // the batch is appended

	fetched := make(chan error, 1)
	go func() {
		a, err := b.newRawClient(t.Context())
		if err != nil {
			fetched <- err
			return
		}
		defer a.close()

		_, err = a.offsetAt("t", 0, time.Now().Add(-time.Hour))
		fetched <- err
	}()

	select {
	case <-fetched:
		t.Error("a record could be seen before it was synced")
	case <-written:
		t.Error("a record was acknowledged before it was synced")
	case <-time.After(50 * time.Millisecond):
	}

	close(proceed)
	if err := errors.Join(<-written, <-fetched); err != nil {
		t.Error(err)
	}
}

// TestAJournalWithoutSpaceIsDoneWithout: kfake rejects what it has no space for, and accepts
// batches again when there is some, which a failed sync would prevent.
func TestAJournalWithoutSpaceIsDoneWithout(t *testing.T) {
	b := openTopic(t, Config{})
	var full atomic.Bool
	b.durability.syncData = func(f *os.File) error {
		if full.CompareAndSwap(true, false) {
			return &os.PathError{Op: "write", Path: f.Name(), Err: syscall.ENOSPC}
		}
		return syncData(f)
	}

	var segmentSynced atomic.Bool
	b.durability.fsync = func(f *os.File) error {
		if strings.HasSuffix(f.Name(), segmentSuffix) {
			segmentSynced.Store(true)
		}
		return f.Sync()
	}

	full.Store(true)
	if err := tryWrite(t, b, "t"); err != nil || b.Err() != nil {
		t.Fatalf("without space for the journal: %v, %v", err, b.Err())
	}
	if !segmentSynced.Load() {
		t.Error("the batch is in neither the journal nor a synced segment")
	}
	if err := tryWrite(t, b, "t"); err != nil {
		t.Errorf("after that: %v", err)
	}
}
