//go:build !linux

package aisession

import "net"

// tune makes a provider that does not read be noticed in seconds.
func tune(tcp *net.TCPConn) { _ = tcp.SetWriteBuffer(sendBuffer) }
