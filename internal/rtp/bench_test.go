package rtp_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"trunkline/internal/rtp"
)

// BenchmarkRelay is what relaying costs at 100 PCMU calls, both ways: the
// phones are another process, so that what is measured is the relay's own.
func BenchmarkRelay(b *testing.B) {
	for _, calls := range []int{20, 100} {
		b.Run(fmt.Sprintf("calls=%d", calls), func(b *testing.B) {
			for b.Loop() {
				relayFor(b, calls, 4*time.Second)
			}
		})
	}
}

// traffic is what the phones saw.
type traffic struct {
	Sent, Heard int
	P50, P99    time.Duration
}

func relayFor(b *testing.B, calls int, length time.Duration) {
	ports := newPorts(b, 30000, 31998)
	var sides []*rtp.Port
	list := ""
	for range 2 * calls {
		p, err := ports.Open()
		if err != nil {
			b.Fatal(err)
		}
		defer p.Close()
		sides = append(sides, p)
		list += fmt.Sprintf("%d ", p.Addr().Port())
	}
	phones := exec.Command(os.Args[0], "-test.run=^TestPhonesOfBenchmark$")
	phones.Env = append(os.Environ(), "TRUNKLINE_BENCH_PORTS="+list, "TRUNKLINE_BENCH_LENGTH="+length.String())
	out, err := phones.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	phones.Stderr = os.Stderr
	if err := phones.Start(); err != nil {
		b.Fatal(err)
	}
	var mine []uint16
	lines := json.NewDecoder(out)
	if err := lines.Decode(&mine); err != nil {
		b.Fatal(err)
	}
	var pcmu rtp.Mapping
	pcmu.Clock = 8000
	pcmu.Pass(0, 0)
	for i := 0; i < len(sides); i += 2 {
		for j := range 2 {
			sides[i+j].SetRemote(netip.AddrPortFrom(loopback, mine[i+j]))
		}
		rtp.NewRelay(sides[i], sides[i+1], pcmu, pcmu)
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
	b.ReportMetric(float64(seen.Sent)/length.Seconds(), "packets/s")
	b.ReportMetric(float64(seen.P50.Microseconds())/1000, "ms-p50")
	b.ReportMetric(float64(seen.P99.Microseconds())/1000, "ms-p99")
}

func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestPhonesOfBenchmark is the other process of BenchmarkRelay.
func TestPhonesOfBenchmark(t *testing.T) {
	list := os.Getenv("TRUNKLINE_BENCH_PORTS")
	if list == "" {
		t.Skip("part of a benchmark")
	}
	length, err := time.ParseDuration(os.Getenv("TRUNKLINE_BENCH_LENGTH"))
	if err != nil {
		t.Fatal(err)
	}
	var phones []*net.UDPConn
	var mine []uint16
	for _, port := range strings.Fields(list) {
		number, err := strconv.Atoi(port)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.DialUDP("udp4", nil, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: number})
		if err != nil {
			t.Fatal(err)
		}
		phones, mine = append(phones, conn), append(mine, uint16(conn.LocalAddr().(*net.UDPAddr).Port))
	}
	print := json.NewEncoder(os.Stdout)
	if err := print.Encode(mine); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	delays := make([][]time.Duration, len(phones))
	var listening sync.WaitGroup
	for i, conn := range phones {
		listening.Go(func() { delays[i] = listen(conn) })
	}
	seen := traffic{Sent: speak(t, phones, length)}
	time.Sleep(200 * time.Millisecond)
	for _, conn := range phones {
		_ = conn.Close()
	}
	listening.Wait()
	all := slices.Concat(delays...)
	slices.Sort(all)
	seen.Heard = len(all)
	if len(all) > 0 {
		seen.P50, seen.P99 = all[len(all)/2], all[len(all)*99/100]
	}
	if err := print.Encode(seen); err != nil {
		t.Fatal(err)
	}
	os.Exit(0) // without the test's own words on the output
}

const perSecond = 50

// speak sends each phone's packets, evenly spread.
func speak(t *testing.T, phones []*net.UDPConn, length time.Duration) (sent int) {
	packet := make([]byte, 172)
	packet[0] = 0x80
	gap := time.Second / time.Duration(perSecond*len(phones))
	start := time.Now()
	for time.Since(start) < length {
		for ; sent < int(time.Since(start)/gap); sent++ {
			binary.BigEndian.PutUint16(packet[2:], uint16(sent/len(phones)))
			binary.BigEndian.PutUint32(packet[4:], uint32(160*(sent/len(phones))))
			binary.BigEndian.PutUint64(packet[12:], uint64(time.Now().UnixNano()))
			if _, err := phones[sent%len(phones)].Write(packet); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(gap)
	}
	return sent
}

func listen(conn *net.UDPConn) (delays []time.Duration) {
	buffer := make([]byte, 1500)
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			return delays
		}
		if n == 172 {
			delays = append(delays, time.Duration(time.Now().UnixNano()-int64(binary.BigEndian.Uint64(buffer[12:]))))
		}
	}
}
