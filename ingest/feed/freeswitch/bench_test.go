package freeswitch

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"trunkline/ingest/feed"
)

// BenchmarkRead reads events of about 3 KB from a switch over a socket, with the
// account of each by its domain.
func BenchmarkRead(b *testing.B) {
	const batch = 1000
	pad := strings.Repeat("x", 40)
	var stream strings.Builder
	size := 0
	for i := range batch {
		body := strings.Builder{}
		fmt.Fprintf(&body, `{"Event-Name":"CHANNEL_ANSWER","Core-UUID":"838f3dac-d3c3-4d97-9935-831417f7a97d","Event-Date-Timestamp":"1795169706190966",`+
			`"Event-Sequence":"%d","Unique-ID":"e895fedc-3fa1-4984-81a7-%012d","Call-Direction":"inbound","Caller-Caller-ID-Number":"15551230001",`+
			`"Caller-Destination-Number":"5000","Caller-Context":"default","variable_domain_name":"acme.example.com"`, i+1, i)
		for n := 0; body.Len() < 3000; n++ {
			fmt.Fprintf(&body, `,"variable_sip_header_%d":"%s"`, n, pad)
		}
		body.WriteString("}")
		size = body.Len()
		stream.WriteString(frame(body.String()))
	}
	rounds := make(chan struct{}, 1)
	f := &fakeSwitch{play: func(p *peer) {
		for range rounds {
			if _, err := io.WriteString(p.Conn, stream.String()); err != nil {
				return
			}
		}
	}}
	s := connect(b, f.serve(b).at(b, feed.Config{}, domains{"acme.example.com": "acme"}))
	defer close(rounds)
	b.SetBytes(int64(size * batch))
	b.ReportAllocs()
	for b.Loop() {
		rounds <- struct{}{}
		for _, e := range read(b, s, batch) {
			if e.Account != "acme" {
				b.Fatalf("got %+v", e)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/event")
	b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "events/s")
}
