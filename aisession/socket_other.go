//go:build !linux

package aisession

import (
	"crypto/tls"
	"net"
)

// tune makes a provider that does not read be noticed in seconds.
func tune(conn net.Conn) {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer)
	}
}
