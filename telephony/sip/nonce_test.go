package sip

import (
	"net/netip"
	"testing"
	"time"
)

func FuzzNonce(f *testing.F) {
	n, now := newNonces([32]byte{1}, time.Hour), time.Now()
	f.Add("AAAA")
	f.Fuzz(func(t *testing.T, nonce string) {
		if n.valid(nonce, netip.Addr{}, now) {
			t.Errorf("%q is fresh", nonce)
		}
	})
}
