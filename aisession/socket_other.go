//go:build !linux

package aisession

import "net"

// tune limits the send buffer so that a provider that does not read is detected within seconds.
func tune(tcp *net.TCPConn) { _ = tcp.SetWriteBuffer(sendBuffer) }
