package aisession

import (
	"crypto/tls"
	"net"

	"golang.org/x/sys/unix"
)

// tune makes a provider that is gone or does not read be noticed in seconds. A
// socket that refuses it works all the same.
func tune(conn net.Conn) {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	_ = tcp.SetWriteBuffer(sendBuffer)
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(hangLimit.Milliseconds()))
	})
}
