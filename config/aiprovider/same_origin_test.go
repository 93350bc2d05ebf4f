package aiprovider

import (
	"testing"
)

func TestOrigins(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"wss://h/x", "wss://h:443/y", true},
		{"ws://h/x", "ws://h:80", true},
		{"ws://h:443", "wss://h:443", false},
		{"wss://[::1]:9/x", "wss://[::1]:9/y", true},
		{"wss://[::1]:9/x", "wss://[::1]:10/x", false},
		{"wss://h/x", "::", false},
	} {
		if got := sameOrigin(c.a, c.b); got != c.same {
			t.Errorf("%s and %s: %v", c.a, c.b, got)
		}
	}
}
