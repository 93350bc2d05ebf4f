package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
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

// countRecords returns how many records of a topic have the record of each of the bodies. A record that a stopped
// normalizer wrote again, as its readers expect (package normalizer, Repeats), counts once.
func (c *cluster) countRecords(t *testing.T, topic string, bodies int) []int {
	t.Helper()
	opened := c.kafka(t)
	partitions, err := opened.Partitions(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}

	counts, written := make([]int, bodies), make(map[string]bool)
	for p := range partitions {
		first, next, err := opened.Offsets(t.Context(), topic, p)
		if err == nil {
			err = opened.Scan(t.Context(), topic, p, first, next, func(r *kafka.Record) {
				position := string(r.Header(wire.HeaderPosition)) // records of the raw topic have none
				if position != "" && written[position] {
					return
				}
				written[position] = true

				for number := range counts {
					own := strings.TrimSuffix(record("demo", number), "}") // an event has more members
					if bytes.Contains(r.Value, []byte(own+",")) || bytes.Contains(r.Value, []byte(own+"}")) {
						counts[number]++
					}
				}
			})
		}
		if err != nil {
			t.Fatal(err)
		}
	}

	return counts
}

// checkStoredOnce checks that the raw topic has each of the bodies' two records once.
func (c *cluster) checkStoredOnce(t *testing.T, bodies int) {
	t.Helper()
	for number, got := range c.countRecords(t, wire.TopicRaw, bodies) {
		if got != 2 {
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
			killed, other := c.nodes[0], c.lastChannelNode()

			const bodies = 6
			var all []time.Duration
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
				all = append(all, took)
				if killed != other {
					killed.start(t)
				}
			}

			// 3 s, most of it the lease, on a machine that is not busy; one that is may be late sometimes.
			slices.Sort(all)
			if all[bodies/2] > 15*time.Second {
				t.Errorf("the repeats took %v", all)
			}
			c.checkStoredOnce(t, bodies)
		})
	}
}

// A process that is stopped with a body for longer than its lease, and then goes on, may send it after it was
// repeated: each record is one event all the same.
func TestABodyOfAStoppedProcessIsOneEventEach(t *testing.T) {
	t.Parallel()
	c := allRolesCluster(t)
	stopped, other := c.nodes[0], c.nodes[1]

	const bodies = 8
	for number := range bodies {
		posted := make(chan struct{})
		go func() {
			defer close(posted)
			_, _ = c.postKeyed(t.Context(), stopped, number) // whatever its outcome
		}()

		time.Sleep(time.Duration(number) * 2 * time.Millisecond) // a point of the request
		stopped.signal(t, syscall.SIGSTOP)
		c.repeatUntilAccepted(t, other, number)
		stopped.signal(t, syscall.SIGCONT)
		<-posted
	}

	c.ingestNode.postAccepted(t, c.key, "svc.cc", typeJSON, record("demo", bodies), 1)
	eventually(t, "the last event", func() error {
		if c.countRecords(t, wire.TopicEvents, bodies+1)[bodies] == 0 {
			return errors.New("it is not there")
		}
		return nil
	})

	t.Logf("records of the bodies in %s: %d", wire.TopicRaw, c.countRecords(t, wire.TopicRaw, bodies))
	for number, got := range c.countRecords(t, wire.TopicEvents, bodies) {
		if got != 2 {
			t.Errorf("body %d is %d events, want 2", number, got)
		}
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
