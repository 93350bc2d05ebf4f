package asterisk

import (
	"io"
	"strings"
	"testing"
)

// BenchmarkRead measures an event from the socket to the feed's record: the scripted Asterisk
// writes the calls of a capture, 50 times each.
func BenchmarkRead(b *testing.B) {
	text, _, _ := strings.Cut(capture(b, "queue-answered"), "Response: Goodbye")
	p := &pbx{t: b, events: strings.Repeat(text, 50), piece: 64 << 10, end: true}
	p.start()
	events := strings.Count(p.events, "\r\nEvent: ")
	platform := newPlatform(b, p, accounts{"acme": "A"}, byCode)
	total := 0

	for b.Loop() {
		s, err := platform.Connect(b.Context())
		if err != nil {
			b.Fatal(err)
		}

		for err == nil {
			_, err = s.Read(b.Context())
		}

		if !strings.Contains(err.Error(), io.EOF.Error()) {
			b.Fatal(err)
		}

		s.Close()
		total += events
	}

	b.ReportMetric(float64(total)/b.Elapsed().Seconds(), "events/s")
}
