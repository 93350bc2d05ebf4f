package aicheck

import (
	"testing"
	"time"
)

func TestPacketLengths(t *testing.T) {
	for packet, want := range map[string]time.Duration{
		"\xf8\xff\xfe": 20 * time.Millisecond, "\x18": 60 * time.Millisecond, "\x19": 120 * time.Millisecond,
		"\x60": 10 * time.Millisecond,
		"\x80": 2500 * time.Microsecond, "\xfb\x03": 60 * time.Millisecond,
		"": 0, "\xfb": 0, "\xfb\x00": 0, "\xfb\x07": 0,
	} {
		got, err := opusDuration([]byte(packet))
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%x: %v, %v, want %v", packet, got, err, want)
		}
	}
}
