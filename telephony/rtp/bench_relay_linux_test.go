package rtp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"trunkline/telephony/rtp"
)

// relaying relays between the first phone and the second, the third and the
// fourth, and returns the ports that they are to send to.
type relaying func(b *testing.B, phones []netip.AddrPort) (numbers []uint16, stop func())

// BenchmarkRelay is what relaying costs, both ways, beside a bare loop that
// only reads and writes the same packets. The phones are another process, so
// that what is measured is the relay's own; their packets come evenly spread,
// which is the worst for whoever wants to handle several at once.
func BenchmarkRelay(b *testing.B) {
	for _, with := range []struct {
		name  string
		relay relaying
	}{
		{"bare", bareRelay},
		{"ours", ourRelay},
	} {
		for _, calls := range []int{20, 100} {
			b.Run(fmt.Sprintf("%s/calls=%d", with.name, calls), func(b *testing.B) {
				for b.Loop() {
					relayFor(b, calls, 4*time.Second, with.relay)
				}
			})
		}
	}
}

func ourRelay(b *testing.B, phones []netip.AddrPort) (numbers []uint16, stop func()) {
	ports := newPorts(b, 30000, 31998)
	var pcmu rtp.PayloadMapping
	pcmu.Clock = 8000
	pcmu.Pass(0, 0)
	var opened []*rtp.Port

	for i, phone := range phones {
		p, err := ports.Open()
		if err != nil {
			b.Fatal(err)
		}

		p.SetRemote(phone, phone.Addr())
		numbers = append(numbers, p.Addr().Port())
		if i%2 == 1 {
			rtp.Relay(opened[i-1], p, pcmu, pcmu)
		}

		opened = append(opened, p)
	}

	return numbers, func() {
		for _, p := range opened {
			p.Close()
		}
	}
}

// traffic has the packets that the phones received.
type traffic struct {
	Sent, Heard   int
	Late          int // more than a packet's length after they were sent
	P50, P99, Max time.Duration
}

func relayFor(b *testing.B, calls int, length time.Duration, relay relaying) {
	phones := exec.Command(os.Args[0], "-test.run=^TestPhonesOfBenchmark$")
	phones.Env = append(os.Environ(), fmt.Sprintf("TRUNKLINE_BENCH_PHONES=%d", 2*calls),
		"TRUNKLINE_BENCH_LENGTH="+length.String())
	in, err := phones.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}

	out, err := phones.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}

	phones.Stderr = os.Stderr
	if err := phones.Start(); err != nil {
		b.Fatal(err)
	}

	var numbers []uint16
	lines := json.NewDecoder(out)
	if err := lines.Decode(&numbers); err != nil {
		b.Fatal(err)
	}

	var addresses []netip.AddrPort
	for _, number := range numbers {
		addresses = append(addresses, netip.AddrPortFrom(loopback, number))
	}

	theirs, stop := relay(b, addresses)
	defer stop()

	if err := json.NewEncoder(in).Encode(theirs); err != nil {
		b.Fatal(err)
	}

	before := cpu(b)
	start := time.Now()
	var seen traffic
	if err := lines.Decode(&seen); err != nil {
		b.Fatal(err)
	}

	used, passed := cpu(b)-before, time.Since(start)
	_, _ = io.Copy(io.Discard, out)
	if err := phones.Wait(); err != nil {
		b.Fatal(err)
	}

	b.ReportMetric(100*used.Seconds()/passed.Seconds()/float64(calls), "%core/call")
	b.ReportMetric(float64(seen.Sent-seen.Heard), "lost")
	b.ReportMetric(float64(seen.Late), "late")
	b.ReportMetric(float64(seen.Sent)/length.Seconds(), "packets/s")
	b.ReportMetric(float64(seen.P50.Microseconds())/1000, "ms-p50")
	b.ReportMetric(float64(seen.P99.Microseconds())/1000, "ms-p99")
	b.ReportMetric(float64(seen.Max.Microseconds())/1000, "ms-max")
}

func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
