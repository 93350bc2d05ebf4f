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

// Guard dials addresses chosen by accounts, and rejects those in the operator's own
// networks. It checks the address of every connection attempt, after the name was
// resolved, so that a name cannot resolve differently between the check and the
// connection.
//
// It guards connections, not requests: a client that dials through it must use no
// proxy, and must follow redirects only through it. gorilla's websocket.Dialer with
// NetDialContext set and Proxy nil satisfies both: it returns an error for any
// response but 101.
type Guard struct {
	Allow        []netip.Prefix // always allowed
	LoopbackOnly bool           // allows only the loopback addresses in Allow: for URLs without TLS
	Setting      string         // the setting of Allow, for error messages
}

// dialTimeout bounds one connection, including all addresses of its name, in addition
// to the context.
const dialTimeout = 10 * time.Second

// DialContext connects to a host and port, over TCP only. For a rejected address the
// error's chain has an *AddressError.
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

// Check returns nil for an allowed address, else an *AddressError.
func (g Guard) Check(address netip.Addr) error {
	address = address.WithZone("").Unmap()
	ipv4 := embeddedIPv4(address)
	allowed := func(network netip.Prefix) bool {
		return network.Contains(address) || ipv4.IsValid() && network.Contains(ipv4)
	}
	class := classOf(address)

	// Before the class decides: the operator may allow networks that are rejected by default.
	if slices.ContainsFunc(g.Allow, allowed) {
		if g.LoopbackOnly && class != ClassLoopback {
			return &AddressError{ClassNotLoopback, g.Setting}
		}
		return nil
	}

	// The gateway of such an address connects to the embedded one.
	if class == ClassPublic && ipv4.IsValid() {
		class = classOf(ipv4)
	}
	if class == ClassPublic && g.LoopbackOnly {
		class = ClassNotLoopback
	}
	if class != ClassPublic {
		return &AddressError{class, g.Setting}
	}

	return nil
}

// AddressError is the error of a rejected connection. It does not contain the address:
// the account chose a name, and must not learn how the operator's resolver resolves
// it.
type AddressError struct {
	Class   Class
	Setting string // Guard.Setting
}

func (e *AddressError) Error() string {
	if e.Class == ClassNotLoopback {
		return "without TLS only loopback addresses in " + e.Setting + " are reached"
	}
	return fmt.Sprintf("the host leads to an address that is not public (%s), and %s does not have it", e.Class,
		e.Setting)
}
