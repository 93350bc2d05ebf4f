package backend

import (
	"context"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// embeddedRedis is a Redis in this process, without a port: only this process can use
// it.
type embeddedRedis struct {
	redis      *miniredis.Miniredis
	server     *server.Server
	stopped    chan struct{}
	clockEnded chan struct{}
}

// redisClockInterval is the largest delay of a key's expiry in the embedded Redis.
const redisClockInterval = 250 * time.Millisecond

func startEmbeddedRedis() (*embeddedRedis, error) {
	redis := miniredis.NewMiniRedis()
	conn, err := redis.Dial() // the first Dial starts the server, without a listener
	if err != nil {
		return nil, fmt.Errorf("starting the embedded redis: %w", err)
	}

	if err := conn.Close(); err != nil {
		return nil, fmt.Errorf("starting the embedded redis: %w", err)
	}

	e := &embeddedRedis{redis: redis, server: redis.Server(), stopped: make(chan struct{}),
		clockEnded: make(chan struct{})}
	go e.expireKeys()

	return e, nil
}

// expireKeys advances the clock of miniredis, which expires keys only when told the time.
func (e *embeddedRedis) expireKeys() {
	defer close(e.clockEnded)

	tick := time.NewTicker(redisClockInterval)
	defer tick.Stop()

	last := time.Now()
	for {
		select {
		case <-e.stopped:
			return
		case now := <-tick.C:
			e.redis.FastForward(now.Sub(last))
			last = now
		}
	}
}

func (e *embeddedRedis) close() {
	close(e.stopped)
	<-e.clockEnded
	e.redis.Close()
}

// dial connects over a pair of sockets. miniredis's own Dial has an unbuffered pipe, on
// which a long pipeline and its first responses block each other.
func (e *embeddedRedis) dial(context.Context, string, string) (net.Conn, error) {
	sockets, err := socketPair()
	if err != nil {
		return nil, fmt.Errorf("connecting to the embedded redis: %w", err)
	}

	client, err := socketConn(sockets[0])
	if err != nil {
		_ = syscall.Close(sockets[1]) // nothing was written to it
		return nil, err
	}

	peer, err := socketConn(sockets[1])
	if err != nil {
		_ = client.Close()
		return nil, err
	}

	e.server.ServeConn(peer)
	return client, nil
}

// socketPair returns two connected sockets that no other program inherits. The lock keeps programs from
// starting in between: not every system can create such sockets in one call.
func socketPair() (sockets [2]int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()

	sockets, err = syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return sockets, os.NewSyscallError("socketpair", err)
	}

	for _, socket := range sockets {
		syscall.CloseOnExec(socket)
	}

	return sockets, nil
}

// socketConn returns a connection for a socket, which it closes: net.FileConn duplicates it.
func socketConn(socket int) (net.Conn, error) {
	file := os.NewFile(uintptr(socket), "embedded redis")
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, fmt.Errorf("connecting to the embedded redis: %w", err)
	}
	return conn, nil
}
