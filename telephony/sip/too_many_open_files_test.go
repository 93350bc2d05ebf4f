package sip

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// exhaustedListener has no file for its first connections.
type exhaustedListener struct {
	net.Listener
	refusals int // left
}

func (l *exhaustedListener) Accept() (net.Conn, error) {
	if l.refusals == 0 {
		return l.Listener.Accept()
	}
	l.refusals--
	return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
}

// TestAListenerSurvivesTooManyOpenFiles: the stack serves no more connections once Accept has failed.
func TestAListenerSurvivesTooManyOpenFiles(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	m, log := newMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler)
	l := &streamListener{Listener: &exhaustedListener{tcp, 2}, maxConnections: 10, metrics: m, log: log,
		panicGuard: &stackPanicGuard{}, openConns: map[*streamConn]struct{}{}, perNetwork: map[netip.Prefix]int{}}
	closed := sync.OnceValue(l.Close)
	defer closed()

	client, err := net.Dial("tcp", tcp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()

	conn, err := l.Accept()
	if err != nil {
		t.Fatalf("the connection after two refusals: %v", err)
	}
	if conn.RemoteAddr().String() != client.LocalAddr().String() {
		t.Errorf("accepted %v, want %v", conn.RemoteAddr(), client.LocalAddr())
	}

	if err := closed(); err != nil {
		t.Error(err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed listener accepts: %v", err)
	}
}
