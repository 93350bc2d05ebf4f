package rtp

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/fault"
	"trunkline/internal/panics"
)

// Config has the addresses and the port range of media.
type Config struct {
	// Listen is the address that sockets are bound to.
	Listen netip.Addr
	// Advertise is the address announced to peers; the zero value means Listen.
	Advertise netip.Addr
	// MinPort and MaxPort bound the ports, inclusive. Only even ports are used; the odd port above each is
	// left for RTCP that a peer may send.
	MinPort, MaxPort uint16
}

// Validate checks c.
func (c Config) Validate() error {
	switch {
	case !c.Listen.IsValid():
		return errors.New("rtp: no listen address")
	case c.Listen.IsUnspecified() && !c.Advertise.IsValid():
		return errors.New("rtp: an advertised address is required when listening on the unspecified address")
	case c.Advertise.IsValid() && c.Advertise.Is4() != c.Listen.Is4():
		return errors.New("rtp: the listen and advertised addresses have different address families")
	case c.MinPort == 0 || c.firstEven() > int(c.MaxPort):
		return fmt.Errorf("rtp: no even port between %d and %d", c.MinPort, c.MaxPort)
	}

	return nil
}

func (c Config) firstEven() int { return int(c.MinPort) + int(c.MinPort)%2 }

// placePacket is the place of panics in the handling of one packet.
const placePacket = "rtp_packet"

// Ports allocates media ports from a range.
type Ports struct {
	config  Config
	metrics *metrics
	panics  *panics.Recoverer
	log     *slog.Logger

	readers readers

	mu   sync.Mutex
	free []uint16 // port numbers; FIFO: a port rests before it is reused
}

// NewPorts returns the allocator of a range. It opens no sockets.
func NewPorts(config Config, reg prometheus.Registerer, log *slog.Logger) (*Ports, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if !config.Advertise.IsValid() {
		config.Advertise = config.Listen
	}

	m, recoverer := newMetrics(reg), panics.New(reg, log)
	recoverer.InitMetrics(placePacket)

	p := &Ports{config: config, metrics: m, panics: recoverer, log: log, readers: readers{log: log}}
	for port := config.firstEven(); port <= int(config.MaxPort); port += 2 {
		p.free = append(p.free, uint16(port))
	}

	m.available.Set(float64(len(p.free)))
	return p, nil
}

// Open binds the next free port and starts reading it. The error is fault.KindUnavailable if no port
// is free.
func (p *Ports) Open() (*Port, error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	for range len(p.free) {
		number := p.free[0]
		p.free = p.free[1:]
		port, err := p.tryOpen(number)
		if err == nil {
			p.metrics.inUse.Inc()
			return port, nil
		}

		p.free = append(p.free, number)
		if !errors.Is(err, syscall.EADDRINUSE) { // else another program uses the port: try the next
			return nil, fmt.Errorf("opening a media port: %w", err)
		}
	}

	return nil, fault.Unavailable(nil, time.Second, "no media port is free")
}

func (p *Ports) tryOpen(number uint16) (*Port, error) {
	socket, err := bind(netip.AddrPortFrom(p.config.Listen, number))
	if err != nil {
		return nil, err
	}
	return newPort(p, socket, netip.AddrPortFrom(p.config.Advertise, number))
}

func (p *Ports) releasePort(number uint16) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, number)
	p.metrics.inUse.Dec()
}
