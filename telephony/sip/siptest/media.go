package siptest

import (
	"fmt"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pion/rtp"
)

// Media is a phone's audio: it sends packets whose payload is one repeated byte, and counts received
// packets by their first byte.
type Media struct {
	t    testing.TB
	conn *net.UDPConn

	mu      sync.Mutex
	target  *net.UDPAddr           // nil before SetRemoteFromSDP
	packets map[uint8]map[byte]int // by payload type and first byte
	ssrcs   map[uint32]bool        // of received packets
	version int                    // of the last session description
}

func newMedia(t testing.TB) *Media {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatalf("a phone's audio: %v", err)
	}
	m := &Media{t: t, conn: conn, packets: map[uint8]map[byte]int{}, ssrcs: map[uint32]bool{}}
	go m.read()
	return m
}

func (m *Media) close() { _ = m.conn.Close() }

func (m *Media) read() {
	buffer := make([]byte, 2048)
	for {
		n, _, err := m.conn.ReadFromUDP(buffer)
		if err != nil {
			return
		}

		var p rtp.Packet
		err = p.Unmarshal(buffer[:n])
		if err != nil || len(p.Payload) == 0 {
			m.t.Errorf("a phone received a packet that is not RTP: %v", err)
			continue
		}

		m.mu.Lock()
		if m.packets[p.PayloadType] == nil {
			m.packets[p.PayloadType] = map[byte]int{}
		}

		m.packets[p.PayloadType][p.Payload[0]]++
		m.ssrcs[p.SSRC] = true
		m.mu.Unlock()
	}
}

// Port returns the local port.
func (m *Media) Port() int { return m.conn.LocalAddr().(*net.UDPAddr).Port }

// SDP returns a session description with the given payload types (0 PCMU, 8 PCMA, 107 opus), or PCMU
// if none is given. Its port is portOffset above the phone's own.
func (m *Media) SDP(direction string, portOffset int, payloadTypes ...int) string {
	if len(payloadTypes) == 0 {
		payloadTypes = []int{0}
	}

	m.mu.Lock()
	m.version++
	version := m.version
	m.mu.Unlock()

	formats := strings.Trim(fmt.Sprint(payloadTypes), "[]")
	s := fmt.Sprintf(
		"v=0\r\no=- 7 %d IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio %d RTP/AVP %s 101\r\na=rtpmap:101 telephone-event/8000\r\n",
		version, m.Port()+portOffset, formats)

	for _, pt := range payloadTypes {
		if pt >= 96 {
			s += fmt.Sprintf("a=rtpmap:%d opus/48000/2\r\n", pt)
		}
	}

	return s + "a=" + direction + "\r\n"
}

var (
	mediaPort = regexp.MustCompile(`m=audio (\d+)`)
	mediaHost = regexp.MustCompile(`c=IN IP4 ([\d.]+)`)
)

// SetRemoteFromSDP sends to the media address of a session description.
func (m *Media) SetRemoteFromSDP(sdp string) {
	port, host := mediaPort.FindStringSubmatch(sdp), mediaHost.FindStringSubmatch(sdp)
	if port == nil || host == nil {
		m.t.Errorf("no audio in the description %q", sdp)
		return
	}

	remote, err := net.ResolveUDPAddr("udp4", host[1]+":"+port[1])
	if err != nil {
		m.t.Errorf("the audio's address: %v", err)
		return
	}

	m.mu.Lock()
	defer m.mu.Unlock()

	m.target = remote
}

// RemoteAddr returns the address that media is sent to.
func (m *Media) RemoteAddr() *net.UDPAddr {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.target
}

// SendPackets sends n packets filled with voice, 5 ms apart.
func (m *Media) SendPackets(payloadType uint8, voice byte, n int) {
	payload := make([]byte, 160)
	for i := range payload {
		payload[i] = voice
	}

	for i := range n {
		p := rtp.Packet{Header: rtp.Header{
			Version: 2, PayloadType: payloadType, SequenceNumber: uint16(i), Timestamp: uint32(160 * i),
			SSRC: uint32(m.Port()),
		}, Payload: payload}
		b, err := p.Marshal()
		if err != nil {
			m.t.Errorf("writing RTP: %v", err)
			return
		}

		_, err = m.conn.WriteToUDP(b, m.RemoteAddr())
		if err != nil {
			m.t.Errorf("sending RTP: %v", err)
			return
		}

		time.Sleep(5 * time.Millisecond)
	}
}

// Received returns the number of received packets with a payload type and first byte.
func (m *Media) Received(payloadType uint8, voice byte) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.packets[payloadType][voice]
}

// Sources returns the number of RTP sources received.
func (m *Media) Sources() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.ssrcs)
}

// WaitReceived waits for n packets with a payload type and first byte.
func (m *Media) WaitReceived(payloadType uint8, voice byte, n int) {
	m.t.Helper()
	for deadline := time.Now().Add(patience); m.Received(payloadType, voice) < n; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			m.t.Fatalf("received %d packets of type %d with %#x, want %d", m.Received(payloadType, voice), payloadType,
				voice, n)
		}
	}
}
