package rtp_test

import (
	"net"
	"testing"

	"trunkline/internal/fault"
)

func TestPortsAreBounded(t *testing.T) {
	ports := newPorts(t, 25201, 25205) // 25202 and 25204
	taken, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 25202})
	if err != nil {
		t.Fatal(err)
	}

	one := open(t, ports)
	if one.Addr().Port() != 25204 {
		t.Errorf("opened %v beside another program's", one.Addr())
	}
	if _, err := ports.Open(); fault.KindOf(err) != fault.KindUnavailable {
		t.Errorf("a port more than there are: %v", err)
	}

	_ = taken.Close()
	two := open(t, ports)
	one.Close()
	one.Close()
	three := open(t, ports)
	if two.Addr().Port() != 25202 || three.Addr().Port() != 25204 {
		t.Errorf("opened %v and %v", two.Addr(), three.Addr())
	}
}
