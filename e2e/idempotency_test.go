package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	wire "trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/testservice"
)

// postKeyed posts two records under an Idempotency-Key. The error is one of the connection.
func (c *cluster) postKeyed(ctx context.Context, n *node, number int) (answer, error) {
	return n.call(ctx, http.MethodPost, "/api/v2/ingest/svc.cc", map[string]string{
		"X-API-Key": c.key, "Content-Type": typeJSON, "Idempotency-Key": fmt.Sprint("body-", number),
	}, "["+record("demo", number)+","+record("demo", number)+"]")
}

// repeatUntilAccepted repeats a body until it is accepted, and returns the time that took.
func (c *cluster) repeatUntilAccepted(t *testing.T, n *node, number int) time.Duration {
	t.Helper()
	began := time.Now()
	eventually(t, "the repeat to be accepted", func() error {
		a, err := c.postKeyed(t.Context(), n, number)
		if err == nil && a.status != http.StatusAccepted {
			err = fmt.Errorf("%s", a)
		}
		return err
	})
	return time.Since(began)
}

// checkStoredOnce checks that the raw topic has each of the bodies' records once.
func (c *cluster) checkStoredOnce(t *testing.T, bodies int) {
	t.Helper()
	opened := c.kafka(t)
	partitions, err := opened.Partitions(t.Context(), wire.TopicRaw)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for p := range partitions {
		first, next, err := opened.Offsets(t.Context(), wire.TopicRaw, p)
		if err == nil {
			err = opened.Scan(t.Context(), wire.TopicRaw, p, first, next, func(r *kafka.Record) {
				if r.Header(wire.HeaderBody) != nil {
					counts[string(r.Value)]++
				}
			})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for number := range bodies {
		if got := counts[record("demo", number)]; got != 2 {
			t.Errorf("body %d has %d records in Kafka, want 2", number, got)
		}
	}
}

// A body that is repeated under its key after kill -9 is accepted soon, and stored once.
func TestABodyRepeatedAfterAKillIsStoredOnce(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t testing.TB) *cluster{
		"embedded": func(t testing.TB) *cluster { return embeddedCluster(t) }, "kafka": allRolesCluster,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t)
			killed, other := c.nodes[0], c.otherNode()
			const bodies = 6
			for number := range bodies {
				ctx, cancel := context.WithCancel(t.Context())
				posted := make(chan struct{})
				go func() {
					defer close(posted)
					_, _ = c.postKeyed(ctx, killed, number) // whatever its outcome
				}()
				time.Sleep(time.Duration(number) * 4 * time.Millisecond) // a point of the request
				killed.kill(t)
				cancel()
				<-posted
				if killed == other {
					killed.start(t)
				}
				took := c.repeatUntilAccepted(t, other, number)
				t.Logf("body %d was accepted again after %v", number, took.Round(time.Millisecond))
				if took > 15*time.Second { // 3 s on a machine that is not busy; a lease alone takes 20
					t.Errorf("the repeat of body %d took %v", number, took)
				}
				if killed != other {
					killed.start(t)
				}
			}
			c.checkStoredOnce(t, bodies)
		})
	}
}

// A body that got 503 and is repeated under its key is stored once, whether Kafka had it or not.
func TestABodyRepeatedAfter503IsStoredOnce(t *testing.T) {
	t.Parallel()
	brokers := testservice.KafkaCluster(t, 1)
	n := newNode(t, "node", map[string]string{
		"TRUNKLINE_DEMO_PASSWORD": password, "TRUNKLINE_KAFKA_BROKERS": strings.Join(brokers.Brokers(), ","),
		"TRUNKLINE_KAFKA_PARTITIONS": "2", "TRUNKLINE_INGEST_PRODUCE_TIMEOUT": "1s",
	})
	c := newCluster(t, brokers.Brokers(), "", n)
	const bodies = 3
	for number := range bodies {
		brokers.Pause(t, 0)
		a, err := c.postKeyed(t.Context(), n, number)
		if err != nil || a.status != http.StatusServiceUnavailable {
			t.Errorf("without Kafka: %s, %v", a, err)
		}
		if number == 1 { // the process that knows of the request is gone
			n.kill(t)
		}
		brokers.Resume(t, 0)
		if number == 1 {
			n.start(t)
		}
		took := c.repeatUntilAccepted(t, n, number)
		t.Logf("body %d was accepted after %v", number, took.Round(time.Millisecond))
	}
	c.checkStoredOnce(t, bodies)
}
