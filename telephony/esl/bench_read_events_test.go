package esl

import (
	"bufio"
	"bytes"
	"testing"
)

// BenchmarkReadEvents is what one event of a call costs to read, and to look at
// as a driver does.
func BenchmarkReadEvents(b *testing.B) {
	data := capture(b)
	in := bufio.NewReaderSize(nil, 64<<10)
	events := 0
	b.SetBytes(int64(len(data)))

	for b.Loop() {
		in.Reset(bytes.NewReader(data))
		for {
			f, err := readFrame(in, limit)
			if err != nil {
				break
			}

			e, err := parseEvent(f)
			if err != nil {
				b.Fatal(err)
			}

			for _, name := range []string{"Event-Name", "Channel-Presence-Data", "Unique-ID", "Hangup-Cause",
				"Event-Sequence"} {
				e.Get(name)
			}

			events++
		}
	}

	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
}
