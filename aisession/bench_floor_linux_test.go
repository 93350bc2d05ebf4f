package aisession_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// startFloor runs a loop on one thread that does for each call what no service
// can do without: it takes the phone's packet when it comes; every 20 ms it
// reads what the provider sent, sends the phone a packet, and sends the
// provider a message with the first bytes of the newest packet.
func startFloor(b *testing.B, url string, phones []netip.AddrPort) (ours []netip.AddrPort, stop func()) {
	provider := netip.MustParseAddrPort(strings.Trim(strings.TrimPrefix(url, "ws://"), "/"))
	poll := ok(unix.EpollCreate1(0))
	var calls []*floorCall
	byPhone := map[int]*floorCall{}

	for _, phone := range phones {
		c := &floorCall{phone: bound(unix.SOCK_DGRAM), provider: upgraded(b, provider), slot: -1}
		c.message = append(binary.BigEndian.AppendUint16([]byte{0x81, 0x80 | 126}, uint16(len(benchMedia)+216+3)), 0, 0,
			0, 0)
		c.message = append(append(c.message, benchMedia...), bytes.Repeat([]byte("A"), 216)...)
		c.message = append(c.message, `"}}`...)
		must(unix.Connect(c.phone, sockaddr(phone)))
		must(unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, c.phone,
			&unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(c.phone)}))
		calls, byPhone[c.phone] = append(calls, c), c
		ours = append(ours, addressOf(c.phone))
	}

	timer := ok(unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK))
	every := unix.NsecToTimespec(int64(floorSlot))
	must(unix.TimerfdSettime(timer, 0, &unix.ItimerSpec{Interval: every, Value: every}, nil))
	must(unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, timer, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(timer)}))

	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread()
		floor(poll, timer, byPhone, quit)
	}()

	return ours, func() {
		close(quit)
		<-ended
		for _, c := range calls {
			_, _ = unix.Close(c.phone), unix.Close(c.provider)
		}
		_, _ = unix.Close(poll), unix.Close(timer)
	}
}

const floorSlot = 2 * time.Millisecond

type floorCall struct {
	phone, provider int
	slot            int // of ten; -1: none
	message         []byte
}

func floor(poll, timer int, calls map[int]*floorCall, quit chan struct{}) {
	events, buffer, packet := make([]unix.EpollEvent, 64), make([]byte, 64<<10), make([]byte, 172)
	var slots [10][]*floorCall
	for tick := 0; ; {
		n, err := unix.EpollWait(poll, events, 100)
		if err == unix.EINTR {
			continue
		}

		must(err)
		select {
		case <-quit:
			return
		default:
		}

		for _, e := range events[:n] {
			if int(e.Fd) != timer {
				c := calls[int(e.Fd)]
				if n, _ := unix.Read(c.phone, buffer); n > 16 {
					base64.StdEncoding.Encode(c.message[8+len(benchMedia):], buffer[12:15])
				}
				if c.slot < 0 {
					c.slot = (tick + 2) % len(slots)
					slots[c.slot] = append(slots[c.slot], c)
				}

				continue
			}

			var ticks [8]byte
			if _, err := unix.Read(timer, ticks[:]); err != nil {
				continue
			}

			for range binary.LittleEndian.Uint64(ticks[:]) {
				tick++
				for _, c := range slots[tick%len(slots)] {
					_, _ = unix.Read(c.provider, buffer)
					_, _ = unix.Write(c.phone, packet)
					_, _ = unix.Write(c.provider, c.message)
				}
			}
		}
	}
}

// upgraded is a WebSocket to the provider, without the client's checks.
func upgraded(b *testing.B, to netip.AddrPort) int {
	fd := ok(unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0))
	must(unix.Connect(fd, sockaddr(to)))
	must(unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1))
	_, _ = unix.Write(fd,
		[]byte("GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"))
	answer := make([]byte, 1024)
	if n, _ := unix.Read(fd, answer); !bytes.HasSuffix(answer[:max(n, 0)], []byte("\r\n\r\n")) {
		b.Fatalf("the handshake was answered with %q", answer[:max(n, 0)])
	}

	must(unix.SetNonblock(fd, true))
	return fd
}
