package rtp

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// gather is how long a loop rests between looking at its sockets. A packet
// waits that long at most, half of it in the middle, and all that came
// meanwhile shares one wake-up: at a hundred calls ten packets do. The first
// packet after a silence is read at once.
const gather = time.Millisecond

// loop reads many sockets in one goroutine.
type loop struct {
	log    *slog.Logger
	epoll  int             // of the sockets
	bell   *os.File        // an epoll of that epoll, which Go's poller watches
	bellFd int             // bell's own
	ring   syscall.RawConn // bell's
	done   chan struct{}   // the goroutine has ended

	mu    sync.Mutex
	ports map[int32]*Port // by file descriptor

	// The goroutine's own.
	events [256]unix.EpollEvent
	found  []unix.EpollEvent // the part of events that the last look filled
	in     inbox
	packet Packet
}

// startLoop makes a loop and starts it. Sockets ring the bell only when it is
// armed: watched by Go's poller themselves, or through an epoll that is always
// armed, each packet would wake a thread, even one that the loop is about to
// look for by itself.
func startLoop(log *slog.Logger) (*loop, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making an epoll: %w", err)
	}
	l := &loop{log: log, epoll: epoll, ports: map[int32]*Port{}, done: make(chan struct{})}
	if err := l.hang(); err != nil {
		return nil, errors.Join(err, unix.Close(epoll))
	}
	go l.run()
	return l, nil
}

// hang makes the bell.
func (l *loop) hang() (err error) {
	if l.bellFd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("making an epoll: %w", err)
	}
	if err := unix.SetNonblock(l.bellFd, true); err != nil { // os.NewFile watches only such
		return errors.Join(fmt.Errorf("setting up an epoll: %w", err), unix.Close(l.bellFd))
	}
	l.bell = os.NewFile(uintptr(l.bellFd), "epoll")
	err = unix.EpollCtl(l.bellFd, unix.EPOLL_CTL_ADD, l.epoll, &unix.EpollEvent{Events: unix.EPOLLONESHOT})
	if err == nil {
		err = l.bell.SetReadDeadline(time.Time{}) // refused when Go's poller does not watch it
	}
	if err == nil {
		l.ring, err = l.bell.SyscallConn()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("watching an epoll: %w", err), l.bell.Close())
	}
	return nil
}

func (l *loop) add(p *Port) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	fd := p.socket.fd
	if err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
		return fmt.Errorf("watching a media port: %w", err)
	}
	l.ports[int32(fd)] = p
	return nil
}

// drop forgets a port, whose socket is still open.
func (l *loop) drop(p *Port) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.ports, int32(p.socket.fd))
	_ = unix.EpollCtl(l.epoll, unix.EPOLL_CTL_DEL, p.socket.fd, nil) // closing the socket does it too
}

func (l *loop) port(fd int32) *Port {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ports[fd]
}

func (l *loop) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ports)
}

// stop ends the loop and waits for that.
func (l *loop) stop() {
	if err := l.bell.Close(); err != nil {
		l.log.Warn("closing an epoll descriptor failed", "error", err)
	}
	<-l.done
	if err := unix.Close(l.epoll); err != nil {
		l.log.Warn("closing an epoll descriptor failed", "error", err)
	}
}

// run reads one packet of each socket that has one, again until none has, and
// rests. It waits for the bell only when nothing came while it rested.
func (l *loop) run() {
	defer close(l.done)
	rested := false
	for {
		l.look()
		switch {
		case len(l.found) > 0:
			l.read()
			rested = false
		case !rested:
			time.Sleep(gather)
			rested = true
		default:
			if !l.wait() {
				return
			}
		}
	}
}

func (l *loop) look() {
	n, err := ready(l.epoll, l.events[:])
	if err != nil {
		l.log.Error("reading media sockets failed", "error", err)
	}
	l.found = l.events[:n]
}

// ready fills events with what has come; it does not wait, and so needs not
// tell the scheduler, as unix.EpollWait does.
func ready(epoll int, events []unix.EpollEvent) (n int, err error) {
	found, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epoll),
		uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), 0, 0, 0)
	switch errno {
	case 0:
		return int(found), nil
	case unix.EINTR:
		return 0, nil
	}
	return 0, errno
}

func (l *loop) read() {
	for _, e := range l.found {
		if p := l.port(e.Fd); p != nil {
			p.read(&l.in, &l.packet)
		}
	}
}

// wait arms the bell and waits for it; false when the loop is to end. Arming it
// rings it when a socket has a packet already.
func (l *loop) wait() bool {
	armed, rung := false, [1]unix.EpollEvent{}
	err := l.ring.Read(func(uintptr) bool {
		if !armed {
			armed = true
			err := unix.EpollCtl(l.bellFd, unix.EPOLL_CTL_MOD, l.epoll, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT})
			if err != nil {
				l.log.Error("epoll wait failed", "error", err)
				return true
			}
			return false
		}
		n, err := ready(l.bellFd, rung[:]) // disarms it
		return n > 0 || err != nil
	})
	return err == nil
}

// read reads one packet.
func (p *Port) read(in *inbox, packet *Packet) {
	p.receiving.Lock()
	defer p.receiving.Unlock()
	if p.socket.fd < 0 {
		return // closed since the loop looked
	}
	b, from, err := p.socket.receive(in)
	switch err {
	case nil:
		p.take(packet, b, from)
	case unix.EAGAIN, unix.EINTR:
	default:
		p.ports.metrics.dropped[dropUnreadable].Inc()
	}
}
