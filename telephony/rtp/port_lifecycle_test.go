package rtp_test

import (
	"net/netip"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	pion "github.com/pion/rtp"

	"trunkline/telephony/rtp"
)

// The descriptors besides the ports are closed with the last port, and opened again with the next one.
func TestNothingIsLeftOpen(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("descriptors are counted where Linux lists them")
	}

	ports := newPorts(t, 25300, 25340)
	a, b := newPhone(t), newPhone(t)
	before := descriptors(t)

	for range 3 {
		portA, portB := open(t, ports), open(t, ports)
		portA.SetRemote(a.addr(), loopback)
		portB.SetRemote(b.addr(), loopback)
		rtp.Relay(portA, portB, mapping(0, 0), mapping(0, 0))
		a.send(portA, pion.Packet{Payload: []byte("a")})
		b.hear()
		portA.Close()
		portB.Close()

		if left := descriptors(t) - before; left != 0 {
			t.Fatalf("%d descriptors are left open", left)
		}
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

// More ports than one loop takes, each of them heard.
func TestManyPorts(t *testing.T) {
	ports := newPorts(t, 26000, 27998)
	opened := make([]*rtp.Port, 0, 900)
	for range cap(opened) {
		opened = append(opened, open(t, ports))
	}

	a, b := newPhone(t), newPhone(t)
	for i := 0; i < len(opened); i += 2 {
		opened[i].SetRemote(a.addr(), loopback)
		opened[i+1].SetRemote(b.addr(), loopback)
		rtp.Relay(opened[i], opened[i+1], mapping(0, 0), mapping(0, 0))
		a.send(opened[i], pion.Packet{Payload: []byte("a")})
		b.hear()
	}
}

type counter struct {
	mu   sync.Mutex
	n    int
	gone bool
	t    *testing.T
}

// Receive is rtp.Receiver's.
func (c *counter) Receive(*rtp.Packet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	if c.gone {
		c.t.Error("a packet of a port that is closed")
	}
}

// Ports come and go, are sent through and change hands while all of them get
// packets: no packet is handed on once Close has returned.
func TestPortsComeAndGoUnderTraffic(t *testing.T) {
	ports := newPorts(t, 25420, 25480)
	stop := make(chan struct{})

	var talking sync.WaitGroup
	a := newPhone(t)
	talking.Go(func() {
		packet := []byte{0x80, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 'a'}
		for number := uint16(25420); ; number += 2 {
			select {
			case <-stop:
				return
			default:
			}

			if number > 25480 {
				number = 25420
			}

			_, _ = a.conn.WriteToUDPAddrPort(packet, netip.AddrPortFrom(loopback, number)) // nobody may be there
		}
	})

	var using sync.WaitGroup
	for range 8 {
		using.Go(func() {
			for heard := 0; heard < 20; {
				p, err := ports.Open()
				if err != nil {
					t.Error(err)
					return
				}

				c := &counter{t: t}
				p.SetRemote(a.addr(), loopback)
				p.SetReceiver(c)

				stream := rtp.NewStream(p, rtp.Format{Clock: 8000, Frame: 20 * time.Millisecond})
				var sending sync.WaitGroup
				sending.Go(func() {
					for range 20 {
						_ = stream.Send([]byte("b")) // the port may be closed already
					}
				})

				for seen := 0; seen == 0; runtime.Gosched() {
					c.mu.Lock()
					seen = c.n
					c.mu.Unlock()
				}

				heard++
				p.Close()
				c.mu.Lock()
				c.gone = true
				c.mu.Unlock()

				sending.Wait()
			}
		})
	}

	using.Wait()
	close(stop)
	talking.Wait()
}
