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
	redis  *miniredis.Miniredis
	server *server.Server
	stop   chan struct{}
	ended  chan struct{}
}

// redisTick is the largest delay of a key's expiry in the embedded Redis.
const redisTick = 250 * time.Millisecond

func startEmbeddedRedis() (*embeddedRedis, error) {
	redis := miniredis.NewMiniRedis()
	first, err := redis.Dial() // the first one starts the server, without a listener
	if err != nil {
		return nil, fmt.Errorf("starting the embedded redis: %w", err)
	}
	if err := first.Close(); err != nil {
		return nil, fmt.Errorf("starting the embedded redis: %w", err)
	}
	e := &embeddedRedis{redis: redis, server: redis.Server(), stop: make(chan struct{}), ended: make(chan struct{})}
	go e.expireKeys()
	return e, nil
}

// expireKeys advances the clock of miniredis, which has no clock of its own to expire
// keys.
func (e *embeddedRedis) expireKeys() {
	defer close(e.ended)
	tick := time.NewTicker(redisTick)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-e.stop:
			return
		case now := <-tick.C:
			e.redis.FastForward(now.Sub(last))
			last = now
		}
	}
}

func (e *embeddedRedis) close() {
	close(e.stop)
	<-e.ended
	e.redis.Close()
}

// dial connects over a pair of sockets. miniredis's own Dial has an unbuffered pipe, on
// which a long pipeline and its first responses block each other.
func (e *embeddedRedis) dial(context.Context, string, string) (net.Conn, error) {
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("connecting to the embedded redis: %w", err)
	}
	ours, err := socketConn(ends[0])
	if err != nil {
		_ = syscall.Close(ends[1]) // nothing was written to it
		return nil, err
	}
	theirs, err := socketConn(ends[1])
	if err != nil {
		_ = ours.Close()
		return nil, err
	}
	e.server.ServeConn(theirs)
	return ours, nil
}

// socketConn takes over a socket; net makes a copy of it.
func socketConn(socket int) (net.Conn, error) {
	file := os.NewFile(uintptr(socket), "embedded redis")
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, fmt.Errorf("connecting to the embedded redis: %w", err)
	}
	return conn, nil
}
