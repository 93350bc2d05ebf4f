package aisession

import (
	"net"

	"golang.org/x/sys/unix"
)

// setTCPOptions sets TCP options so that a provider that is gone or does not read is detected within seconds.
// Errors are ignored, because the options are optional.
func setTCPOptions(tcp *net.TCPConn) {
	_ = tcp.SetWriteBuffer(sendBuffer)
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(ackTimeout.Milliseconds()))
	})
}
