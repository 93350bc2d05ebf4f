package netguard

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
)

func TestGuardKnowsEveryClass(t *testing.T) {
	for address, want := range map[string]Class{
		"8.8.8.8": ClassPublic, "1.1.1.1": ClassPublic, "172.32.0.1": ClassPublic, "172.15.255.255": ClassPublic,
		"100.63.255.255": ClassPublic, "100.128.0.0": ClassPublic, "192.167.255.255": ClassPublic,
		"223.255.255.255":      ClassPublic,
		"2606:4700:4700::1111": ClassPublic, "2a00:1450::1": ClassPublic,

		"0.0.0.0": ClassUnspecified, "0.1.2.3": ClassUnspecified, "::": ClassUnspecified,
		"127.0.0.1": ClassLoopback, "127.255.255.254": ClassLoopback, "::1": ClassLoopback,
		"169.254.0.1": ClassLinkLocal, "fe80::1": ClassLinkLocal, "fe80::1%eth0": ClassLinkLocal,
		"febf::1":  ClassLinkLocal,
		"10.0.0.1": ClassPrivate, "10.255.255.255": ClassPrivate, "172.16.0.1": ClassPrivate,
		"172.31.255.255": ClassPrivate,
		"192.168.1.1":    ClassPrivate, "fc00::1": ClassPrivate, "fdff::1": ClassPrivate, "fec0::1": ClassPrivate,
		"100.64.0.1": ClassShared, "100.127.255.255": ClassShared,
		"224.0.0.1": ClassMulticast, "239.255.255.255": ClassMulticast, "ff02::1": ClassMulticast,
		"169.254.169.254": ClassMetadata, "169.254.170.2": ClassMetadata, "168.63.129.16": ClassMetadata,
		"100.100.100.200": ClassMetadata, "192.0.0.192": ClassMetadata, "fd00:ec2::254": ClassMetadata,
		"fd20:ce::254": ClassMetadata,
		"192.0.0.8":    ClassReserved, "192.0.2.1": ClassReserved, "198.18.0.1": ClassReserved,
		"198.51.100.1": ClassReserved,
		"203.0.113.1":  ClassReserved, "240.0.0.1": ClassReserved, "255.255.255.255": ClassReserved,
		"2001:db8::1": ClassReserved, "3fff::1": ClassReserved, "100::1": ClassReserved, "4000::1": ClassReserved,
		"2001::1": ClassReserved, // Teredo

		"::ffff:127.0.0.1": ClassLoopback, "::ffff:10.0.0.1": ClassPrivate, "::ffff:169.254.169.254": ClassMetadata,
		"::ffff:8.8.8.8":     ClassPublic,
		"64:ff9b::127.0.0.1": ClassLoopback, "64:ff9b::a00:1": ClassPrivate, "64:ff9b::8.8.8.8": ClassPublic,
		"64:ff9b::169.254.169.254": ClassMetadata,
		"64:ff9b:1::1":             ClassReserved, "2002:7f00:1::1": ClassLoopback, "2002:c0a8:101::": ClassPrivate,
		"2002:808:808::1": ClassPublic,
		"::127.0.0.1":     ClassReserved, "::ffff:0:127.0.0.1": ClassReserved,
	} {
		t.Run(address, func(t *testing.T) {
			err := Guard{}.Check(netip.MustParseAddr(address))
			if got := classIn(err); got != want {
				t.Errorf("got %s, want %s", got, want)
			}

			plain := Guard{LoopbackOnly: true}.Check(netip.MustParseAddr(address))
			if plain == nil {
				t.Error("reached without TLS")
			}
		})
	}

	if got := classIn(Guard{}.Check(netip.Addr{})); got != ClassUnknown {
		t.Errorf("no address: %s", got)
	}
}

func classIn(err error) Class {
	var refused *AddressError
	switch {
	case err == nil:
		return ClassPublic
	case errors.As(err, &refused):
		return refused.Class
	}
	return Class("another error: " + err.Error())
}

func TestGuardReachesOnlyLoopbackWithoutTLS(t *testing.T) {
	g := Guard{Allow: []netip.Prefix{prefix("127.0.0.0/8"), prefix("10.1.0.0/16")}, LoopbackOnly: true}
	for address, want := range map[string]bool{
		"127.0.0.1": true, "::ffff:127.0.0.1": true, "::1": false, "10.1.2.3": false, "8.8.8.8": false,
	} {
		if err := g.Check(netip.MustParseAddr(address)); (err == nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestGuardReachesWhatIsAllowed(t *testing.T) {
	g := Guard{Allow: []netip.Prefix{prefix("10.1.0.0/16"), prefix("fd00::/8"), prefix("fe80::/10")}}
	for address, want := range map[string]bool{
		"10.1.2.3": true, "::ffff:10.1.2.3": true, "64:ff9b::10.1.2.3": true, "2002:a01:203::1": true, "fd00::1": true,
		"fd00:ec2::254": true, "fe80::1%eth0": true, "10.2.0.1": false, "::ffff:10.2.0.1": false, "127.0.0.1": false,
		"8.8.8.8": true,
	} {
		if err := g.Check(netip.MustParseAddr(address)); (err == nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestGuardLooksAtWhatANameLeadsTo(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()

	_, port, _ := net.SplitHostPort(listener.Addr().String())
	allowing := Guard{Allow: []netip.Prefix{prefix("127.0.0.0/8")}}
	for _, host := range []string{"127.0.0.1", "localhost", "::ffff:127.0.0.1"} {
		address := net.JoinHostPort(host, port)
		if _, err := (Guard{}).DialContext(t.Context(), "tcp", address); classIn(err) != ClassLoopback {
			t.Errorf("%s: %v", host, err)
		}

		conn, err := allowing.DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Errorf("%s, allowed: %v", host, err)
			continue
		}

		_ = conn.Close()
	}

	if _, err := allowing.DialContext(t.Context(), "udp", listener.Addr().String()); classIn(err) != ClassUnknown {
		t.Errorf("over UDP: %v", err)
	}
	if _, err := allowing.DialContext(t.Context(), "unix", "/tmp/x"); err == nil {
		t.Error("a Unix socket is no network")
	}
}

func TestARefusalDoesNotTellTheAddress(t *testing.T) {
	for _, g := range []Guard{{}, {LoopbackOnly: true}} {
		err := g.Check(netip.MustParseAddr("10.11.12.13"))
		if err == nil || strings.Contains(err.Error(), "10.11") {
			t.Errorf("got %v", err)
		}
	}
}

// A provider that redirects reaches nothing: the WebSocket client takes any
// answer but 101 for an error.
func TestRedirectsAreNotFollowed(t *testing.T) {
	reached := false
	private := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer private.Close()

	provider := httptest.NewServer(
		http.RedirectHandler(strings.Replace(private.URL, "http", "ws", 1), http.StatusTemporaryRedirect))
	defer provider.Close()

	dialer := websocket.Dialer{NetDialContext: Guard{Allow: []netip.Prefix{prefix("127.0.0.0/8")}}.DialContext}
	_, response, err := dialer.DialContext(t.Context(), strings.Replace(provider.URL, "http", "ws", 1), nil)
	if !errors.Is(err, websocket.ErrBadHandshake) || response.StatusCode != http.StatusTemporaryRedirect || reached {
		t.Errorf("got %v, reached: %v", err, reached)
	}
}
