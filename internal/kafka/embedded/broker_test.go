package embedded

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"trunkline/internal/fault"
	"trunkline/internal/kafka"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func openBroker(t *testing.T, cfg Config) *Broker {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}

	b, err := Open(cfg, quiet())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { b.Close() }) // most tests close it themselves
	return b
}

// answers reports whether a broker answers on a connection.
func answers(t *testing.T, conn net.Conn) bool {
	t.Helper()
	defer conn.Close()
	a := &rawClient{conn, func() bool { return true }}
	_, err := a.topics()
	return err == nil
}

func TestASecondProcessIsKeptOut(t *testing.T) {
	dir := t.TempDir()
	b := openBroker(t, Config{Dir: dir})
	_, err := Open(Config{Dir: dir}, quiet())
	if fault.KindOf(err) != fault.KindConflict ||
		!strings.Contains(err.Error(), "another trunkline uses this data directory") {
		t.Errorf("got %v", err)
	}

	if conn, err := DialSocket(dir)(t.Context(), "", ""); err != nil || !answers(t, conn) {
		t.Errorf("the first one was harmed: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := openBroker(t, Config{Dir: dir}).Close(); err != nil {
		t.Errorf("after the first one: %v", err)
	}
}

func TestSocketIsForThisUserAndThisBroker(t *testing.T) {
	for name, dir := range map[string]string{
		"short": t.TempDir(),
		"long":  filepath.Join(t.TempDir(), strings.Repeat("deep/", 30)),
	} {
		t.Run(name, func(t *testing.T) {
			b := openBroker(t, Config{Dir: dir})
			info, err := os.Stat(filepath.Join(dir, socketName))
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Fatalf("mode %v, %v", info, err)
			}

			conn, err := DialSocket(dir)(t.Context(), "tcp", "any:1")
			if err != nil || !answers(t, conn) {
				t.Errorf("dialling: %v", err)
			}

			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := DialSocket(dir)(t.Context(), "", ""); err == nil {
				t.Error("dialled a stopped broker")
			}
			if _, err := b.Dial(t.Context(), "", ""); err == nil {
				t.Error("dialled a stopped broker within the process")
			}
		})
	}
}

func TestStaleSocketIsReplaced(t *testing.T) {
	dir := t.TempDir()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, socketName)})
	if err != nil {
		t.Fatal(err)
	}

	l.SetUnlinkOnClose(false) // as a kill leaves it
	l.Close()
	openBroker(t, Config{Dir: dir})

	if conn, err := DialSocket(dir)(t.Context(), "", ""); err != nil || !answers(t, conn) {
		t.Errorf("dialling: %v", err)
	}
}

func TestPortIsLoopbackOnly(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "192.0.2.1:9092", "nonsense"} {
		if _, err := Open(Config{Dir: t.TempDir(), ListenTCP: address},
			quiet()); fault.KindOf(err) != fault.KindInvalid {
			t.Errorf("%s: %v", address, err)
		}
	}

	b := openBroker(t, Config{ListenTCP: "127.0.0.1:0"})
	conn, err := net.Dial("tcp", b.TCPAddr().String())
	if err != nil || !answers(t, conn) {
		t.Errorf("dialling: %v", err)
	}
}

func TestBrokenFramesEndTheirConnectionOnly(t *testing.T) {
	dir := t.TempDir()
	openBroker(t, Config{Dir: dir})
	frame := func(size uint32, key, version int16) []byte {
		b := binary.BigEndian.AppendUint32(nil, size)
		b = binary.BigEndian.AppendUint16(b, uint16(key))
		return binary.BigEndian.AppendUint16(b, uint16(version))
	}

	for name, b := range map[string][]byte{
		"four gigabytes":           frame(1<<32-1, 3, 1),
		"more than a request has":  frame(maxFrameBytes+1, 0, 7),
		"nothing":                  frame(0, 3, 1),
		"less than a head":         frame(9, 3, 1),
		"an unknown request":       frame(100, 12345, 0),
		"a negative request":       frame(100, -1, 0),
		"an unknown version":       frame(100, 3, 999),
		"a negative version":       frame(100, 18, -1),
		"a body that cannot parse": append(frame(20, 3, 4), make([]byte, 16)...),
		"HTTP":                     []byte("GET / HTTP/1.1\r\n\r\n"),
	} {
		conn, err := DialSocket(dir)(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}

		conn.Write(b)
		conn.SetReadDeadline(time.Now().Add(time.Minute))
		if n, err := conn.Read(make([]byte, 1)); name != "a body that cannot parse" &&
			(n != 0 || err == nil || os.IsTimeout(err)) {
			t.Errorf("%s: read %d, %v", name, n, err)
		}

		conn.Close()
		if conn, err := DialSocket(dir)(t.Context(), "", ""); err != nil || !answers(t, conn) {
			t.Fatalf("%s: the broker is gone: %v", name, err)
		}
	}
}

func FuzzCheckedConn(f *testing.F) {
	request := kmsg.NewRequestFormatter().AppendRequest(nil, kmsg.NewPtrMetadataRequest(), 1)
	f.Add(request, 3)
	f.Add(append(request, request...), 100)
	broker, err := Open(Config{Dir: f.TempDir()}, quiet())
	if err != nil {
		f.Fatal(err)
	}

	f.Cleanup(func() { broker.Close() })
	produce := kmsg.NewPtrProduceRequest()
	produce.Acks, produce.Topics = -1, []kmsg.ProduceRequestTopic{{Topic: "t",
		Partitions: []kmsg.ProduceRequestTopicPartition{{Partition: 1}}}}
	f.Add(kmsg.NewRequestFormatter().AppendRequest(nil, produce, 1), 7)

	f.Fuzz(func(t *testing.T, b []byte, chunk int) {
		ours, theirs := net.Pipe()
		go func() {
			for len(b) > 0 {
				n := min(max(chunk, 1), len(b))
				if _, err := ours.Write(b[:n]); err != nil {
					break
				}
				b = b[n:]
			}

			ours.Close()
		}()

		// As kfake reads.
		c := &checkedConn{Conn: theirs, broker: broker}
		defer c.Close()

		var size [4]byte
		for {
			if _, err := io.ReadFull(c, size[:]); err != nil {
				return
			}

			n := binary.BigEndian.Uint32(size[:])
			if n > maxFrameBytes || n < 10 {
				t.Fatalf("a frame of %d bytes came through", n)
			}

			body := make([]byte, n)
			if _, err := io.ReadFull(c, body); err != nil {
				return
			}
			if kmsg.RequestForKey(int16(binary.BigEndian.Uint16(body))) == nil {
				t.Fatal("a request that panics came through")
			}
		}
	})
}

func TestLevelCutsTheLargest(t *testing.T) {
	for _, test := range []struct {
		sizes []int64
		most  int64
		want  int64
	}{
		{nil, 100, 100},
		{[]int64{50, 50}, 100, 100},
		{[]int64{10, 10, 100}, 100, 70},
		{[]int64{100, 100, 1}, 100, 44},
		{[]int64{200}, 100, 90},
	} {
		var partitions []sizedPartition
		for _, size := range test.sizes {
			partitions = append(partitions,
				sizedPartition{topic: "t", diskBytes: size, PartitionInfo: &kfake.PartitionInfo{NumBytes: size}})
		}

		if got := trimTarget(partitions, test.most); got != test.want {
			t.Errorf("%v within %d: %d, want %d", test.sizes, test.most, got, test.want)
		}
	}
}

func TestLogStaysWithinItsBytes(t *testing.T) {
	const most = 8 << 20
	b := openBroker(t, Config{MaxBytes: most, TrimEvery: 20 * time.Millisecond})
	if err := b.cluster.CreateTopic("big", 2, nil); err != nil {
		t.Fatal(err)
	}
	if err := b.cluster.CreateTopic("small", 1, nil); err != nil {
		t.Fatal(err)
	}

	a, err := b.newRawClient(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()

	writeBatch(t, a, "small", 0, 1000)
	const batches, size = 60, 512 << 10
	for i := range batches {
		writeBatch(t, a, "big", int32(i%2), size)
	}

	held := func() (total int64) {
		for _, topic := range []string{"big", "small"} {
			for _, p := range b.cluster.PartitionInfos(topic) {
				total += p.NumBytes
			}
		}
		return total
	}

	for deadline := time.Now().Add(time.Minute); held() > most; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still %d bytes", held())
		}
	}

	for _, p := range b.cluster.PartitionInfos("big") {
		if p.HighWatermark != batches/2 || p.LogStartOffset == 0 || p.NumBytes < most/4 {
			t.Errorf("partition %+v", p)
		}
	}

	if p := b.cluster.PartitionInfo("small", 0); p.LogStartOffset != 0 {
		t.Errorf("the small topic was cut: %+v", p)
	}

	var onDisk int64
	err = filepath.Walk(b.cfg.Dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			onDisk += info.Size()
		}
		return err
	})
	if err != nil || onDisk > most {
		t.Errorf("%d bytes on disk, %v", onDisk, err)
	}
}

// The bound of the directory holds while the compaction of a large state lasts.
func TestACompactionThatLastsDoesNotHoldBackTrimming(t *testing.T) {
	const most = 8 << 20
	b := openBroker(t, Config{MaxBytes: most, TrimEvery: 20 * time.Millisecond})
	if err := b.cluster.CreateTopic("big", 1, nil); err != nil {
		t.Fatal(err)
	}
	if err := b.cluster.CreateTopic("kept", 1, map[string]string{"cleanup.policy": "compact"}); err != nil {
		t.Fatal(err)
	}

	kept := partition{"kept", 0}
	b.durability.mu.Lock()
	b.durability.inFlight[kept] = &unanswered{requests: 1} // compaction waits for it
	b.durability.mu.Unlock()

	a, err := b.newRawClient(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()

	writeBatch(t, a, "kept", 0, 200<<10)

	compacting := func() bool {
		b.durability.mu.Lock()
		defer b.durability.mu.Unlock()
		return b.durability.paused[kept] != nil
	}

	await := func(what string, holds func() bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: not within a minute", what)
			}
		}
	}

	await("the compaction begins", func() bool {
		writeBatch(t, a, "big", 0, 1000) // the trimmer looks again after writes
		return compacting()
	})

	for range 40 {
		writeBatch(t, a, "big", 0, 512<<10)
	}

	await("the log is trimmed", func() bool { return folderSize(t, b.cfg.Dir) < most })
	if b.cluster.PartitionInfo("kept", 0).HighWatermark != 1 {
		t.Error("the compaction has gone on")
	}
}

// Whoever deletes a topic while it is compacted ends its compaction, and not the process.
func TestATopicIsDeletedWhileItIsCompacted(t *testing.T) {
	b := openBroker(t, Config{})
	if err := b.cluster.CreateTopic("kept", 1, map[string]string{"cleanup.policy": "compact"}); err != nil {
		t.Fatal(err)
	}
	if err := b.cluster.DeleteTopic("kept"); err != nil {
		t.Fatal(err)
	}

	c := &compaction{broker: b, partition: partition{"kept", 0}, last: map[string]int64{"k": 0}}
	err := c.appendAgain(t.Context(), []kafka.Record{{Topic: "kept", Key: []byte("k")}})
	if !errors.Is(err, errTopicDeleted) {
		t.Errorf("appending a piece: %v", err)
	}
	if err := c.deleteBefore(1); !errors.Is(err, errTopicDeleted) {
		t.Errorf("deleting a piece: %v", err)
	}
}

// writeBatch produces one record of size bytes.
func writeBatch(t *testing.T, a *rawClient, topic string, partition int32, size int) {
	t.Helper()
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Partition, rp.Records = partition, oneRecord(size)
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic, rt.Partitions = topic, append(rt.Partitions, rp)
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis, req.Topics = -1, 1000, append(req.Topics, rt)
	res := kmsg.NewPtrProduceResponse()
	if err := a.request(req, res); err != nil {
		t.Fatal(err)
	}
	if code := res.Topics[0].Partitions[0].ErrorCode; code != 0 {
		t.Fatalf("produce: error %d", code)
	}
}

func TestCloseIsBounded(t *testing.T) {
	b := openBroker(t, Config{})
	conn, err := b.Dial(context.Background(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	done := make(chan error)
	go func() { done <- b.Close() }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(closeTimeout + time.Minute):
		t.Error("still closing")
	}
}
