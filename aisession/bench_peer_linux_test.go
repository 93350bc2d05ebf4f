package aisession_test

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/sys/unix"

	"trunkline/internal/wsframe"
)

// serveBenchPeer is the other process of BenchmarkSessions: phones and a provider, on
// one thread with epoll. Only the provider of wss has goroutines.
func serveBenchPeer() {
	p := &benchPeerLoop{poll: ok(unix.EpollCreate1(0)), conns: map[int]*benchConn{}, phones: map[int]*benchPhone{}}
	p.timer = ok(unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK))
	p.listener = -1
	url := ""

	if os.Getenv(benchPeer) == "wss" {
		server := httptest.NewTLSServer(http.HandlerFunc(echo))
		url = "wss" + strings.TrimPrefix(server.URL, "https")
	} else {
		p.listener = bound(unix.SOCK_STREAM)
		must(unix.Listen(p.listener, benchCalls))
		p.watch(p.listener)
		url = "ws://" + addressOf(p.listener).String() + "/"
	}

	fmt.Print(url)
	for range benchCalls {
		fd := bound(unix.SOCK_DGRAM)
		must(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1))
		p.phones[fd] = &benchPhone{}
		p.order = append(p.order, fd)
		p.watch(fd)
		fmt.Print(" ", addressOf(fd))
	}

	fmt.Println()
	go p.command()
	p.run()
}

func ok(fd int, err error) int { must(err); return fd }

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func bound(kind int) int {
	fd := ok(unix.Socket(unix.AF_INET, kind|unix.SOCK_NONBLOCK, 0))
	must(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	return fd
}

func addressOf(fd int) netip.AddrPort {
	sa, err := unix.Getsockname(fd)
	must(err)
	in := sa.(*unix.SockaddrInet4)
	return netip.AddrPortFrom(netip.AddrFrom4(in.Addr), uint16(in.Port))
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	return &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())}
}

type benchPeerLoop struct {
	poll, timer, listener int
	conns                 map[int]*benchConn
	phones                map[int]*benchPhone
	order                 []int // of phones
	n                     int   // packets sent

	sent   [128 * 128]int64 // Unix ns of a packet, by its number
	delays []float64        // ms from phone to provider
	gaps   []float64        // ms between what a phone hears
}

type benchConn struct {
	upgraded bool
	buffer   []byte
}

type benchPhone struct{ last int64 }

func (p *benchPeerLoop) watch(fd int) {
	must(unix.EpollCtl(p.poll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}))
}

// command reads where the phones are to send, and at the end of input tells what
// was measured. The phones talk from when the timer starts.
func (p *benchPeerLoop) command() {
	lines := bufio.NewScanner(os.Stdin)
	for i := 0; lines.Scan() && lines.Text() != "go"; i++ {
		must(unix.Connect(p.order[i], sockaddr(netip.MustParseAddrPort(lines.Text()))))
	}

	every := unix.NsecToTimespec(int64(20*time.Millisecond) / benchCalls * 5)
	must(unix.TimerfdSettime(p.timer, 0, &unix.ItimerSpec{Interval: every, Value: every}, nil))
	p.watch(p.timer)

	for lines.Scan() {
	}

	stop, err := unix.Eventfd(1, 0)
	must(err)
	p.watch(stop) // the loop knows it by being none of its own
}

func (p *benchPeerLoop) run() {
	events := make([]unix.EpollEvent, 64)
	buffer, control := make([]byte, 64<<10), make([]byte, 64)
	for {
		n, err := unix.EpollWait(p.poll, events, -1)
		if err == unix.EINTR {
			continue
		}

		must(err)
		for _, e := range events[:n] {
			fd := int(e.Fd)
			switch {
			case fd == p.timer:
				p.talk(buffer)
			case fd == p.listener:
				conn, _, err := unix.Accept4(fd, unix.SOCK_NONBLOCK)
				must(err)
				must(unix.SetsockoptInt(conn, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1))
				must(unix.SetsockoptInt(conn, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1))
				p.conns[conn] = &benchConn{}
				p.watch(conn)
			case p.phones[fd] != nil:
				if _, at := readDatagram(fd, buffer, control); at != 0 {
					phone := p.phones[fd]
					if phone.last != 0 {
						p.gaps = append(p.gaps, float64(at-phone.last)/1e6)
					}
					phone.last = at
				}
			case p.conns[fd] != nil:
				p.hear(fd, p.conns[fd], buffer, control)
			default:
				var u unix.Rusage
				_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
				_ = json.NewEncoder(os.Stdout).Encode(map[string]any{
					"ToProvider": p.delays, "Gaps": p.gaps, "CPU": float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9,
				})
				os.Exit(0)
			}
		}
	}
}

// readDatagram reads, and says when what was read had arrived; 0: it has not.
func readDatagram(fd int, buffer, control []byte) (n int, at int64) {
	n, controls, _, _, err := unix.Recvmsg(fd, buffer, control, 0)
	if err != nil || controls < 32 {
		return max(n, 0), 0
	}
	return n, int64(binary.LittleEndian.Uint64(control[16:]))*1e9 + int64(binary.LittleEndian.Uint64(control[24:]))
}

// talk sends the packets that are due: of every phone one in 20 ms, spread over
// the time. Each holds a number of its own in its first samples, which mu-law
// carries unchanged.
func (p *benchPeerLoop) talk(buffer []byte) {
	var ticks [8]byte
	if _, err := unix.Read(p.timer, ticks[:]); err != nil {
		return
	}

	packet := buffer[:172]
	clear(packet)

	packet[0] = 0x80
	for i := range packet[12:] {
		packet[12+i] = 0x80 | byte(i)
	}

	for range 5 * binary.LittleEndian.Uint64(ticks[:]) {
		number := p.n % len(p.sent)
		turn := uint32(p.n / len(p.order))
		packet[12], packet[13] = 0x80|byte(number>>7), 0x80|byte(number)
		binary.BigEndian.PutUint16(packet[2:], uint16(turn))
		binary.BigEndian.PutUint32(packet[4:], turn*160)
		p.sent[number] = time.Now().UnixNano()
		_, _ = unix.Write(p.order[p.n%len(p.order)], packet)
		p.n++
	}
}

const (
	benchMedia = `{"event":"media","media":{"payload":"`
	benchDelta = `{"type":"response.output_audio.delta","response_id":"r1","item_id":"i1","delta":"`
)

// answerTo returns the audio of a message as a provider of its protocol sends it; nil: it has none.
func answerTo(opcode byte, message []byte) []byte {
	if opcode == wsframe.Binary {
		return message
	}

	for member, begin := range map[string]string{`"payload":"`: benchMedia, `"audio":"`: benchDelta} {
		_, audio, isMedia := bytes.Cut(message, []byte(member))
		audio, _, _ = bytes.Cut(audio, []byte{'"'})
		if isMedia && len(audio) > 0 {
			end := strings.Repeat("}", strings.Count(begin, "{"))
			return append(append([]byte(begin), audio...), `"`+end...)
		}
	}

	return nil
}

// hear answers a handshake, and then sends every media message back.
func (p *benchPeerLoop) hear(fd int, c *benchConn, buffer, control []byte) {
	n, at := readDatagram(fd, buffer, control)
	if n == 0 {
		_ = unix.Close(fd)
		delete(p.conns, fd)
		return
	}

	c.buffer = append(c.buffer, buffer[:n]...)
	if !c.upgraded {
		if end := bytes.Index(c.buffer, []byte("\r\n\r\n")); end > 0 {
			c.upgraded = true
			_, _ = unix.Write(fd, accept(c.buffer[:end+4]))
			c.buffer = c.buffer[end+4:]
		}
	}

	for c.upgraded && len(c.buffer) >= 8 {
		header, size := 2, int(c.buffer[1]&0x7f)
		if size == 126 {
			header, size = 4, int(binary.BigEndian.Uint16(c.buffer[2:]))
		}
		if len(c.buffer) < header+4+size {
			return
		}

		key, message := c.buffer[header:header+4], c.buffer[header+4:header+4+size]
		for i := range message {
			message[i] ^= key[i&3]
		}

		if bytes.HasPrefix(message, []byte(benchMedia)) && n == header+4+size {
			p.note(message, at)
		}

		opcode := c.buffer[0] & 0x0f
		answer := answerTo(opcode, message)
		if answer != nil {
			frame := binary.BigEndian.AppendUint16([]byte{0x80 | opcode, 126}, uint16(len(answer)))
			_, _ = unix.Write(fd, append(frame, answer...))
		}

		c.buffer = c.buffer[:copy(c.buffer, c.buffer[header+4+size:])]
	}
}

func (p *benchPeerLoop) note(message []byte, at int64) {
	var audio [3]byte
	if _, err := base64.StdEncoding.Decode(audio[:], message[len(benchMedia):len(benchMedia)+4]); err != nil ||
		len(message) > 300 || audio[2] != 0x82 {
		return
	}
	if sent := p.sent[int(audio[0]&0x7f)<<7|int(audio[1]&0x7f)]; sent != 0 {
		p.delays = append(p.delays, float64(at-sent)/1e6)
	}
}

func accept(request []byte) []byte {
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(request)))
	must(err)
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return []byte("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " +
		base64.StdEncoding.EncodeToString(sum[:]) + "\r\n\r\n")
}

// echo is the provider of wss.
func echo(w http.ResponseWriter, r *http.Request) {
	conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer conn.Close()

	for {
		kind, message, err := conn.ReadMessage()
		if err != nil {
			return
		}

		if strings.HasPrefix(string(message), benchMedia) && conn.WriteMessage(kind, message) != nil {
			return
		}
	}
}
