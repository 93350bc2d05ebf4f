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

// pollInterval is the pause of a loop between polls of its sockets. A packet waits at most that long, half
// of it on average, and all packets of that time share one wake-up: about ten at a hundred calls. The
// first packet after an idle period is read at once.
const pollInterval = time.Millisecond

// epollLoop reads many sockets in one goroutine.
type epollLoop struct {
	log       *slog.Logger
	epoll     int             // watches the sockets
	idleEpoll *os.File        // an epoll that watches the first one; Go's poller watches it
	idleFd    int             // file descriptor of idleEpoll
	idleConn  syscall.RawConn // raw connection of idleEpoll
	done      chan struct{}   // closed when the goroutine has ended

	mu    sync.Mutex
	ports map[int32]*Port // by file descriptor

	// Used by the loop's goroutine only.
	events      [256]unix.EpollEvent
	readyEvents []unix.EpollEvent // the part of events that the last poll has filled
	buffer      datagramBuffer
	packet      Packet
}

// startEpollLoop starts a loop. The sockets are watched through a second epoll that is armed only while the
// loop is idle. If Go's poller watched the sockets directly, or through an epoll that is always armed,
// each packet would wake a thread, including those that the loop is about to poll for.
func startEpollLoop(log *slog.Logger) (*epollLoop, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making an epoll: %w", err)
	}

	l := &epollLoop{log: log, epoll: epoll, ports: map[int32]*Port{}, done: make(chan struct{})}
	if err := l.createIdleEpoll(); err != nil {
		return nil, errors.Join(err, unix.Close(epoll))
	}

	go l.run()
	return l, nil
}

// createIdleEpoll creates the second epoll.
func (l *epollLoop) createIdleEpoll() (err error) {
	l.idleFd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("making an epoll: %w", err)
	}

	// os.NewFile registers only non-blocking files with the poller
	if err := unix.SetNonblock(l.idleFd, true); err != nil {
		return errors.Join(fmt.Errorf("setting up an epoll: %w", err), unix.Close(l.idleFd))
	}

	l.idleEpoll = os.NewFile(uintptr(l.idleFd), "epoll")
	err = unix.EpollCtl(l.idleFd, unix.EPOLL_CTL_ADD, l.epoll, &unix.EpollEvent{Events: unix.EPOLLONESHOT})
	if err == nil {
		err = l.idleEpoll.SetReadDeadline(time.Time{}) // fails if Go's poller does not watch the file
	}
	if err == nil {
		l.idleConn, err = l.idleEpoll.SyscallConn()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("watching an epoll: %w", err), l.idleEpoll.Close())
	}

	return nil
}

func (l *epollLoop) add(p *Port) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	fd := p.socket.fd
	if err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd,
		&unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
		return fmt.Errorf("watching a media port: %w", err)
	}
	l.ports[int32(fd)] = p
	return nil
}

// remove removes a port whose socket is still open.
func (l *epollLoop) remove(p *Port) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.ports, int32(p.socket.fd))
	_ = unix.EpollCtl(l.epoll, unix.EPOLL_CTL_DEL, p.socket.fd, nil) // closing the socket removes it too
}

func (l *epollLoop) findPort(fd int32) *Port {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ports[fd]
}

func (l *epollLoop) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ports)
}

// stop ends the loop and waits for its goroutine.
func (l *epollLoop) stop() {
	if err := l.idleEpoll.Close(); err != nil {
		l.log.Warn("closing an epoll descriptor failed", "error", err)
	}
	<-l.done
	if err := unix.Close(l.epoll); err != nil {
		l.log.Warn("closing an epoll descriptor failed", "error", err)
	}
}

// run reads one packet from each socket that has one, repeats that until none has, and pauses. It
// waits for the second epoll only if nothing arrived during the pause.
func (l *epollLoop) run() {
	defer close(l.done)

	paused := false
	for {
		l.poll()
		switch {
		case len(l.readyEvents) > 0:
			l.read()
			paused = false
		case !paused:
			time.Sleep(pollInterval)
			paused = true
		default:
			if !l.waitReadable() {
				return
			}
		}
	}
}

func (l *epollLoop) poll() {
	n, err := pollReady(l.epoll, l.events[:])
	if err != nil {
		l.log.Error("reading media sockets failed", "error", err)
	}
	l.readyEvents = l.events[:n]
}

// pollReady fills events with the sockets that are ready. It does not block, so it does not notify the
// scheduler as unix.EpollWait does.
func pollReady(epoll int, events []unix.EpollEvent) (n int, err error) {
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

func (l *epollLoop) read() {
	for _, e := range l.readyEvents {
		p := l.findPort(e.Fd)
		if p != nil {
			p.read(&l.buffer, &l.packet)
		}
	}
}

// waitReadable arms the second epoll and waits for it. It returns false when the loop is to end. Arming
// reports a socket that already has a packet.
func (l *epollLoop) waitReadable() bool {
	armed, idleEvents := false, [1]unix.EpollEvent{}
	err := l.idleConn.Read(func(uintptr) bool {
		if !armed {
			armed = true
			err := unix.EpollCtl(l.idleFd, unix.EPOLL_CTL_MOD, l.epoll,
				&unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT})
			if err != nil {
				l.log.Error("epoll wait failed", "error", err)
				return true
			}

			return false
		}

		n, err := pollReady(l.idleFd, idleEvents[:]) // disarms it
		return n > 0 || err != nil
	})

	return err == nil
}

// read reads one packet.
func (p *Port) read(in *datagramBuffer, packet *Packet) {
	p.receiveMu.Lock()
	defer p.receiveMu.Unlock()

	if p.socket.fd < 0 {
		return // closed since the poll
	}

	b, from, err := p.socket.readDatagram(in)
	switch err {
	case nil:
		p.handleDatagram(packet, b, from)
	case unix.EAGAIN, unix.EINTR:
	default:
		p.ports.metrics.dropped[dropUnreadable].Inc()
	}
}
