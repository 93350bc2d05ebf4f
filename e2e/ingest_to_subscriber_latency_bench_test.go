package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkIngestToSubscriber posts 1,000 events a second, one per request, and reports the time
// from the start of the post until each of 100 subscribers has received the event. Clients and
// server share the machine and use TLS. An operation is an event, so ns/op shows the rate; run it
// with -benchtime 10s.
func BenchmarkIngestToSubscriber(b *testing.B) {
	b.Run("embedded", func(b *testing.B) { measureLatency(b, embeddedCluster(b)) })
	b.Run("real", func(b *testing.B) { measureLatency(b, singleNodeCluster(b)) })
}

// singleNodeCluster is a node with all roles on real Kafka, Redis and PostgreSQL.
func singleNodeCluster(t testing.TB) *cluster {
	t.Helper()
	settings, prefix := backendSettings(t)
	return newCluster(t, nil, prefix, newNode(t, "node", withSettings(settings, "TRUNKLINE_LOG_LEVEL", "warn")))
}

const (
	benchSubscribers = 100
	benchPosters     = 16
	benchPace        = time.Millisecond
	benchWarmUp      = 500 // uncounted events
)

// stopwatch records the time when each event was posted.
type stopwatch struct {
	mu   sync.RWMutex
	sent []time.Time
}

func (w *stopwatch) start() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, time.Now())
	return len(w.sent) - 1
}

func (w *stopwatch) since(n int) time.Duration {
	now := time.Now()
	w.mu.RLock()
	defer w.mu.RUnlock()
	return now.Sub(w.sent[n])
}

func measureLatency(b *testing.B, c *cluster) {
	n := c.nodes[0]
	token := n.login(b, apiPaths, user("alice"))
	var (
		watch     stopwatch
		arrived   atomic.Int64
		listening sync.WaitGroup
		sockets   [benchSubscribers]connection
		took      [benchSubscribers][]time.Duration
	)

	for i := range sockets {
		var err error
		sockets[i], err = (subscription{paths: apiPaths, token: token}).connect(b.Context(), n)
		if err != nil {
			b.Fatal(err)
		}
		listening.Go(func() { took[i] = recordArrivals(sockets[i].(*socket), &watch, &arrived) })
	}

	work, failed := make(chan struct{}, 1024), make(chan error, benchPosters)
	var posting sync.WaitGroup
	for range benchPosters {
		posting.Go(func() {
			for range work {
				if err := postOne(n, c.key, watch.start()); err != nil {
					failed <- err
					return
				}
			}
		})
	}

	pace := func(due time.Time) {
		time.Sleep(time.Until(due))
		select {
		case work <- struct{}{}:
		case err := <-failed:
			b.Fatal(err)
		}
	}

	began := time.Now()
	for i := range benchWarmUp {
		pace(began.Add(time.Duration(i) * benchPace))
	}

	events := 0
	began = time.Now()
	for b.Loop() {
		pace(began.Add(time.Duration(events) * benchPace))
		events++
	}

	rate := float64(events) / time.Since(began).Seconds()
	close(work)
	posting.Wait()

	select {
	case err := <-failed:
		b.Fatal(err)
	default:
	}

	eventually(b, "all events at all subscribers", func() error {
		if got, want := arrived.Load(), int64(benchSubscribers*(benchWarmUp+events)); got != want {
			return fmt.Errorf("%d of %d", got, want)
		}
		return nil
	})

	for _, s := range sockets {
		s.close()
	}

	listening.Wait()
	all := slices.Sorted(func(yield func(time.Duration) bool) {
		for _, some := range took {
			for _, one := range some {
				yield(one)
			}
		}
	})

	for name, share := range map[string]float64{"p50-ms": 0.5, "p99-ms": 0.99, "p99.9-ms": 0.999} {
		b.ReportMetric(float64(all[int(share*float64(len(all)-1))].Microseconds())/1000, name)
	}

	b.ReportMetric(rate, "events/s")
}

// recordArrivals records the time of each counted event until the socket is closed.
func recordArrivals(s *socket, watch *stopwatch, arrived *atomic.Int64) (took []time.Duration) {
	key := []byte(`"n":`)
	for {
		_, text, err := s.conn.ReadMessage()
		if err != nil {
			return took
		}

		_, digits, _ := bytes.Cut(text, key)
		end := max(bytes.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }), 0)
		n, err := strconv.Atoi(string(digits[:end]))
		if err != nil {
			return took // the count of events detects it
		}

		if n >= benchWarmUp {
			took = append(took, watch.since(n))
		}

		arrived.Add(1)
	}
}

// postOne posts one event in its own request.
func postOne(n *node, key string, number int) error {
	request, err := http.NewRequest(http.MethodPost, n.url+"/api/v2/ingest/svc.cc",
		strings.NewReader(record("demo", number)))
	if err != nil {
		return err
	}

	request.Header.Set("Content-Type", typeJSON)
	request.Header.Set("X-API-Key", key)
	response, err := n.web.Do(request)
	if err != nil {
		return err
	}

	_, err = io.Copy(io.Discard, response.Body)
	if err == nil && response.StatusCode != http.StatusAccepted {
		err = fmt.Errorf("ingest answers %s", response.Status)
	}

	return errors.Join(err, response.Body.Close())
}
