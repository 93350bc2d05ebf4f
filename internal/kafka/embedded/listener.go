package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
)

// pipeListener is the only listener of kfake. It accepts connections from within the
// process, from the unix socket, and from the loopback port if configured.
type pipeListener struct {
	broker    *Broker
	dir       string
	listeners []net.Listener
	tcp       net.Listener // one of listeners, or nil
	conns     chan net.Conn
	closed    chan struct{}
	closeOnce sync.Once
	accepting sync.WaitGroup
}

func openListener(dir, tcp string, b *Broker) (*pipeListener, error) {
	d := &pipeListener{broker: b, dir: dir, conns: make(chan net.Conn), closed: make(chan struct{})}
	unix, err := listenSocket(dir)
	if err != nil {
		return nil, err
	}

	d.listeners = append(d.listeners, unix)
	if tcp != "" {
		d.tcp, err = net.Listen("tcp", tcp)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("opening the embedded broker's port: %w", err), d.Close())
		}
		d.listeners = append(d.listeners, d.tcp)
	}

	for _, l := range d.listeners {
		d.accepting.Go(func() { d.acceptFrom(l) })
	}

	return d, nil
}

func (d *pipeListener) acceptFrom(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}

		select {
		case d.conns <- &checkedConn{Conn: conn, broker: d.broker}:
		case <-d.closed:
			conn.Close()
			return
		}
	}
}

// dialInProcess opens a connection within the process. Its requests are checked as well: the
// checks are cheap, and a faulty client cannot crash the process.
func (d *pipeListener) dialInProcess(ctx context.Context) (net.Conn, error) {
	return d.dialAs(ctx, false)
}

// dialAs is dialInProcess; an internal connection may write to paused partitions.
func (d *pipeListener) dialAs(ctx context.Context, internal bool) (net.Conn, error) {
	clientEnd, brokerEnd := net.Pipe()
	select {
	case d.conns <- &checkedConn{Conn: brokerEnd, broker: d.broker, internal: internal}:
		return clientEnd, nil
	case <-d.closed:
		return nil, fmt.Errorf("the embedded broker is stopped: %w", net.ErrClosed)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// dialInternal is Dial for the broker's own client, which may write to paused partitions.
func (b *Broker) dialInternal(ctx context.Context, _, _ string) (net.Conn, error) {
	return b.listener.dialAs(ctx, true)
}

// Accept implements net.Listener.
func (d *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-d.conns:
		return c, nil
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. kfake closes it too.
func (d *pipeListener) Close() error {
	var errs []error
	d.closeOnce.Do(func() {
		close(d.closed)
		for _, l := range d.listeners {
			errs = append(errs, l.Close())
		}
		d.accepting.Wait()
		errs = append(errs, os.Remove(filepath.Join(d.dir, socketName)))
	})

	return errors.Join(errs...)
}

// Addr implements net.Listener. It returns the address that the broker advertises,
// which only clients of the TCP port use.
func (d *pipeListener) Addr() net.Addr {
	if d.tcp != nil {
		return d.tcp.Addr()
	}
	return pipeAddress(Address)
}

func (d *pipeListener) boundAddr() net.Addr {
	if d.tcp == nil {
		return nil
	}
	return d.tcp.Addr()
}

type pipeAddress string

func (pipeAddress) Network() string  { return "pipe" }
func (a pipeAddress) String() string { return string(a) }
