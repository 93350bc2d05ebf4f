package embedded

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

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
