//go:build !linux

package aisession

import "net"

// setTCPOptions limits the send buffer so that a provider that does not read is detected within seconds.
func setTCPOptions(tcp *net.TCPConn) { _ = tcp.SetWriteBuffer(sendBuffer) }
