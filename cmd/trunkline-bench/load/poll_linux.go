package load

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// poller waits for many sockets at once with an epoll, and an eventfd to wake it.
type poller struct {
	epoll, eventfd int
	events         []unix.EpollEvent
}

// socketID tells a subscriber's connection from its earlier ones: the subscriber's slot, and its count of
// connections.
type socketID struct{ slot, connects int32 }

// wakeSlot is the slot of the eventfd.
const wakeSlot = -1

func newPoller() (p *poller, err error) {
	p = &poller{epoll: -1, eventfd: -1, events: make([]unix.EpollEvent, 256)}
	defer func() {
		if err != nil {
			p.close()
		}
	}()

	p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making an epoll: %w", err)
	}

	p.eventfd, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("making an eventfd: %w", err)
	}

	if err := p.register(p.eventfd, unix.EPOLLIN, socketID{slot: wakeSlot}); err != nil {
		return nil, fmt.Errorf("watching the eventfd: %w", err)
	}

	return p, nil
}

// watch adds a socket to the poller. With reading, wait reports it for data, else only for its
// end. Closing the socket removes it.
func (p *poller) watch(fd int, reading bool, id socketID) error {
	events := uint32(unix.EPOLLRDHUP)
	if reading {
		events |= unix.EPOLLIN
	}
	return p.register(fd, events, id)
}

func (p *poller) register(fd int, events uint32, id socketID) error {
	return unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd,
		&unix.EpollEvent{Events: events, Fd: id.slot, Pad: id.connects})
}

// wait appends the sockets to dst that have data to read or were closed by the peer; none after wake.
func (p *poller) wait(dst []socketID) ([]socketID, error) {
	for {
		n, err := unix.EpollWait(p.epoll, p.events, -1)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return dst, fmt.Errorf("waiting for sockets: %w", err)
		}

		for _, e := range p.events[:n] {
			if e.Fd != wakeSlot {
				dst = append(dst, socketID{e.Fd, e.Pad})
			}
		}

		return dst, nil
	}
}

// wake makes the current and every later wait return immediately.
func (p *poller) wake() {
	_, _ = unix.Write(p.eventfd, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // fails only if the counter is full, which wakes too
}

func (p *poller) close() {
	for _, fd := range []int{p.epoll, p.eventfd} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}
