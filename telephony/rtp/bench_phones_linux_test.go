package rtp_test

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestPhonesOfBenchmark is the other process of BenchmarkRelay: one thread that sends each phone's
// packets when they are due, and reads all received packets every few milliseconds. The kernel records
// their time of arrival.
func TestPhonesOfBenchmark(t *testing.T) {
	count, _ := strconv.Atoi(os.Getenv("TRUNKLINE_BENCH_PHONES"))
	if count == 0 {
		t.Skip("part of a benchmark")
	}

	length, err := time.ParseDuration(os.Getenv("TRUNKLINE_BENCH_LENGTH"))
	if err != nil {
		t.Fatal(err)
	}

	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}

	phones := make([]int, count)
	mine := make([]uint16, count)
	for i := range phones {
		phones[i], mine[i] = openPhone(t)
	}

	print := json.NewEncoder(os.Stdout)
	if err := print.Encode(mine); err != nil {
		t.Fatal(err)
	}

	var relays []uint16
	if err := json.NewDecoder(os.Stdin).Decode(&relays); err != nil {
		t.Fatal(err)
	}

	for i, port := range relays {
		if err := unix.Connect(phones[i], &unix.SockaddrInet4{Port: int(port), Addr: loopback.As4()}); err != nil {
			t.Fatal(err)
		}
	}

	sent, delays := talk(t, phones, length)
	slices.Sort(delays)
	seen := traffic{Sent: sent, Heard: len(delays)}

	if len(delays) > 0 {
		seen.P50, seen.P99, seen.Max = delays[len(delays)/2], delays[len(delays)*99/100], delays[len(delays)-1]
		onTime, _ := slices.BinarySearch(delays, time.Second/perSecond+1)
		seen.Late = len(delays) - onTime
	}

	if err := print.Encode(seen); err != nil {
		t.Fatal(err)
	}

	os.Exit(0) // without the test's own words on the output
}

func openPhone(t *testing.T) (fd int, port uint16) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}

	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: loopback.As4()}); err != nil {
		t.Fatal(err)
	}

	at, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}

	return fd, uint16(at.(*unix.SockaddrInet4).Port)
}

const (
	perSecond   = 50
	pcmuPacket  = 172
	betweenRead = 5 * time.Millisecond
)

// talk sends for that long and hears for a while longer.
func talk(t *testing.T, phones []int, length time.Duration) (sent int, delays []time.Duration) {
	packet := make([]byte, pcmuPacket)
	packet[0] = 0x80
	gap := time.Second / time.Duration(perSecond*len(phones))
	start := time.Now()

	for read := betweenRead; ; {
		passed := time.Since(start)
		if passed >= read {
			for _, phone := range phones {
				delays = append(delays, hear(t, phone)...)
			}
			read += betweenRead
		}

		if passed > length {
			if passed > length+200*time.Millisecond {
				return sent, delays
			}
			pause(betweenRead)
			continue
		}

		for ; sent < int(passed/gap); sent++ {
			binary.BigEndian.PutUint16(packet[2:], uint16(sent/len(phones)))
			binary.BigEndian.PutUint32(packet[4:], uint32(160*(sent/len(phones))))
			binary.BigEndian.PutUint64(packet[12:], uint64(time.Now().UnixNano()))
			if _, err := unix.Write(phones[sent%len(phones)], packet); err != nil {
				t.Fatal(err)
			}
		}

		pause(time.Duration(sent+1)*gap - time.Since(start))
	}
}

// pause waits more exactly than time.Sleep.
func pause(d time.Duration) {
	if d > 0 {
		at := unix.NsecToTimespec(d.Nanoseconds())
		_ = unix.Nanosleep(&at, nil)
	}
}

// hear reads the waiting packets, and returns the delay of each from its sending to its arrival in the
// socket.
func hear(t *testing.T, phone int) (delays []time.Duration) {
	var packet [1500]byte
	var told [64]byte
	for {
		n, toldSize, _, _, err := unix.Recvmsg(phone, packet[:], told[:], 0)
		if err == unix.EAGAIN {
			return delays
		}
		if err != nil {
			t.Fatal(err)
		}

		messages, err := unix.ParseSocketControlMessage(told[:toldSize])
		if err != nil || len(messages) != 1 {
			t.Fatalf("%d messages with a packet: %v", len(messages), err)
		}

		came := *(*unix.Timespec)(unsafe.Pointer(&messages[0].Data[0]))
		if n == pcmuPacket {
			delays = append(delays, time.Duration(came.Nano()-int64(binary.BigEndian.Uint64(packet[12:]))))
		}
	}
}
