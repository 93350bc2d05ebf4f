package sip_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"trunkline/telephony/sip"
)

func TestOverTCP(t *testing.T) {
	w := newTestEnv(t, sip.Config{}, nil)
	conn, err := net.Dial("tcp", w.server.Addr().String())
	must(t, err)
	defer conn.Close()

	answers := bufio.NewReader(conn)
	for i := range 3 {
		_, err := fmt.Fprintf(conn, optionsRequest, i, i+1)
		must(t, err)
		must(t, conn.SetReadDeadline(time.Now().Add(patience)))
		line, err := answers.ReadString('\n')
		must(t, err)

		if !strings.HasPrefix(line, "SIP/2.0 200") {
			t.Errorf("answered %q", line)
		}

		for line != "\r\n" {
			line, err = answers.ReadString('\n')
			must(t, err)
		}
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	w := newTestEnv(t, sip.Config{Limits: sip.Limits{MaxConnections: 20}}, nil) // two for one address
	for range 3 {
		conn, err := net.Dial("tcp", w.server.Addr().String())
		must(t, err)
		defer conn.Close()
	}
	eventually(t, "the third connection is closed",
		func() bool { return w.metric("trunkline_sip_flood_dropped_total", "connections") == 1 })
}
