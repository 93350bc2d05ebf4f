package netguard

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Guard dials addresses that accounts choose, and refuses those that lead into
// our own networks. It looks at the address that a connection is
// about to be made to, after the name was resolved and for every attempt, so
// that a name cannot lead elsewhere between the look and the connection.
//
// It guards connections, not requests: a client that dials through it must use
// no proxy, and follow no redirect but through it again. gorilla's
// websocket.Dialer with NetDialContext set and Proxy nil does both: any answer
// but 101 is an error to it.
type Guard struct {
	Allow    []netip.Prefix // reached whatever they are
	Loopback bool           // of Allow only loopback is reached, and nothing else: for URLs without TLS
	Setting  string         // that Allow is from, for error messages
}

// dialTimeout bounds one connection with all the addresses of its name, where
// the context does not.
const dialTimeout = 10 * time.Second

// DialContext connects to a host and port, over TCP only. An address that is not
// reached is an *AddressError in the error's chain.
func (g Guard) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout, Control: g.control}
	return dialer.DialContext(ctx, network, address)
}

func (g Guard) control(network, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil || !strings.HasPrefix(network, "tcp") {
		return &AddressError{ClassUnknown, g.Setting}
	}
	return g.Check(target.Addr())
}

// Check returns nil for an address that may be reached, else an *AddressError.
func (g Guard) Check(address netip.Addr) error {
	address = address.WithZone("").Unmap()
	inner := embedded(address)
	allowed := func(network netip.Prefix) bool {
		return network.Contains(address) || inner.IsValid() && network.Contains(inner)
	}
	class := classOf(address)
	if slices.ContainsFunc(g.Allow, allowed) {
		if g.Loopback && class != ClassLoopback {
			return &AddressError{ClassPlain, g.Setting}
		}
		return nil
	}
	if class == ClassPublic && inner.IsValid() {
		class = classOf(inner)
	}
	if class == ClassPublic && g.Loopback {
		class = ClassPlain
	}
	if class != ClassPublic {
		return &AddressError{class, g.Setting}
	}
	return nil
}

// AddressError is a connection that the guard did not make. It does not contain the
// address: the account chose a name, and what our resolver makes of it is our
// business.
type AddressError struct {
	Class   Class
	Setting string // Guard.Setting
}

func (e *AddressError) Error() string {
	if e.Class == ClassPlain {
		return "without TLS only loopback addresses in " + e.Setting + " are reached"
	}
	return fmt.Sprintf("the host leads to an address that is not public (%s), and %s does not have it", e.Class, e.Setting)
}
