package rtp_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/audit/audittest"
	"trunkline/config/callrecording"
	"trunkline/config/encryption"
	"trunkline/internal/testservice/testdb"
	"trunkline/recording"
	"trunkline/telephony/localcall"
	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
)

// BenchmarkRecordedRelay measures the cost of recording beyond relaying: 200 calls at once, relayed, and then
// relayed and recorded, sealed, from their first packet to their row in the database. late counts frames
// that came more than 20 ms after they were sent.
func BenchmarkRecordedRelay(b *testing.B) {
	const calls, length = 200, 20 * time.Second
	for _, with := range []struct {
		name  string
		relay relaying
	}{{"relayed", ourRelay}, {"recorded", recordedRelay}} {
		b.Run(fmt.Sprintf("%s/calls=%d", with.name, calls), func(b *testing.B) {
			for b.Loop() {
				relayFor(b, calls, length, with.relay)
			}
		})
	}
}

// benchAccount is every account's policy and keys: all calls are recorded, sealed.
type benchAccount struct{}

func (benchAccount) Policy(context.Context, string) (callrecording.Policy, error) {
	return callrecording.Policy{Mode: callrecording.ModeAll}, nil
}

func (benchAccount) Key(context.Context, string, int64) (encryption.Key, error) {
	return encryption.Key{ID: "key_auto_bench", Version: 1, Key: "a key of a benchmark, long enough",
		Salt: "the salt of a benchmark"}, nil
}

func (a benchAccount) Current(ctx context.Context, accountID string) (encryption.Sealing, error) {
	key, err := a.Key(ctx, accountID, 1)
	return encryption.Sealing{Enabled: true, Algorithm: "AES-256-GCM", Key: key}, err
}

func (benchAccount) Publish(context.Context, string, []byte) error { return nil }

// recordedRelay is ourRelay with a recording of each call.
func recordedRelay(b *testing.B, phones []netip.AddrPort) (numbers []uint16, stop func()) {
	ports := newPorts(b, 30000, 31998)
	var pcmu rtp.PayloadMapping
	pcmu.Clock = 8000
	pcmu.Pass(0, 0)
	db, folder := testdb.Open(b, testdb.SQLite(b)), b.TempDir()
	store, err := recording.OpenDir(filepath.Join(folder, "recordings"))
	if err != nil {
		b.Fatal(err)
	}

	service, err := recording.New(b.Context(), recording.DefaultSettings(), recording.Deps{
		DB: db, Store: store, LiveDir: filepath.Join(folder, "takes"), Keys: benchAccount{}, Publisher: benchAccount{},
		Policies: benchAccount{},
		Audit:    audittest.New(b, db), Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}

	recorder := recording.NewRecorder(service, nil)
	before := liveHeap()

	var opened []*rtp.Port
	var recordings []localcall.Recording
	for i, phone := range phones {
		p, err := ports.Open()
		if err != nil {
			b.Fatal(err)
		}

		p.SetRemote(phone, phone.Addr())
		numbers, opened = append(numbers, p.Addr().Port()), append(opened, p)
		if i%2 == 1 {
			near := opened[i-1]
			rtp.Relay(near, p, pcmu, pcmu)
			r := recorder.Record(
				localcall.RecordedCall{AccountID: "bench", CallID: fmt.Sprint("call-", i/2), Direction: "inbound",
					Port: near})
			r.Begin(sip.NegotiatedMedia{Codecs: []sip.NegotiatedCodec{{Codec: sip.PCMU()}}})
			recordings = append(recordings, r)
		}
	}

	return numbers, func() {
		b.ReportMetric(float64(liveHeap()-before)/1024/float64(len(recordings)), "KB/recording")
		used, began := cpu(b), time.Now()
		for _, r := range recordings {
			r.End()
		}

		ended, cancel := context.WithCancel(b.Context())
		cancel()

		if err := recorder.Run(ended); err != nil {
			b.Error(err)
		}

		b.ReportMetric(float64((cpu(b)-used).Milliseconds())/float64(len(recordings)), "store-ms/call")
		b.Logf("stored within %v", time.Since(began))
		page, err := service.List(b.Context(), recording.Filter{Account: "bench"})
		if err != nil || len(page.Data) == 0 {
			b.Errorf("%d are stored: %v", len(page.Data), err)
		}

		for _, m := range page.Data {
			if !m.Encrypted || m.DurationMS < 15_000 {
				b.Errorf("%+v", m)
			}
		}

		for _, p := range opened {
			p.Close()
		}

		if err := store.Close(); err != nil {
			b.Error(err)
		}
	}
}

// liveHeap returns the bytes that are in use on heap and stacks.
func liveHeap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
