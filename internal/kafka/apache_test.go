package kafka_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"trunkline/internal/kafka"
	"trunkline/internal/testservice"
)

func TestApacheKafka(t *testing.T) {
	suite(t, service{
		name:   "apache",
		config: kafka.Config{Brokers: testservice.Kafka(t)},
		stamps: true,
	})
}

// TestApacheKafkaCluster runs the suite on three brokers that want a login,
// and then takes brokers away from under it.
func TestApacheKafkaCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("three brokers take a while")
	}
	cluster := testservice.SecureKafkaCluster(t, 3)
	s := service{
		name: "cluster",
		config: kafka.Config{Brokers: cluster.Brokers(), SASL: kafka.SASL{
			Mechanism: "scram-sha-512", Username: cluster.User, Password: cluster.Password,
		}},
		stamps: true,
		restart: func(t *testing.T) {
			cluster.Kill(t, 0)
			cluster.Start(t, 0)
		},
	}
	suite(t, s)
	t.Run("brokers killed and frozen under load", func(t *testing.T) { failover(t, s, cluster) })
	t.Run("a wrong password is refused", func(t *testing.T) {
		wrong := s
		wrong.config.SASL.Password = "wrong"
		if err := wrong.open(t).Ping(t.Context()); err == nil {
			t.Error("let in")
		}
	})
}

// failover produces and reads without a pause while one broker after the other
// goes. Nothing may be lost, moved, or there twice.
func failover(t *testing.T, s service, cluster *testservice.Cluster) {
	const partitions, writers = 3, 6
	c := s.topic(t, partitions)
	p := c.NewProducer(kafka.ProducerConfig{DeliveryTimeout: time.Minute})
	stop := make(chan struct{})
	counts := make([]int, writers)
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for ; ; counts[w]++ {
				select {
				case <-stop:
					return
				default:
				}
				r := kafka.Record{Topic: "t", Partition: w % partitions, Key: fmt.Append(nil, w), Value: fmt.Append(nil, counts[w])}
				if err := p.Produce(t.Context(), r); err != nil {
					t.Errorf("writer %d, record %d: %v", w, counts[w], err)
					return
				}
			}
		})
	}
	var slowest time.Duration
	for broker := range 3 {
		time.Sleep(time.Second)
		began := time.Now()
		if broker == 1 {
			cluster.Pause(t, broker)
			time.Sleep(12 * time.Second) // longer than a session: leaders move
			cluster.Resume(t, broker)
		} else {
			cluster.Kill(t, broker)
			time.Sleep(4 * time.Second)
			cluster.Start(t, broker)
		}
		time.Sleep(4 * time.Second) // replicas catch up
		slowest = max(slowest, time.Since(began))
	}
	close(stop)
	writing.Wait()
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	got := make([]int, writers)
	for partition := range partitions {
		for _, r := range readAll(t, c, "t", partition, 0) {
			w, _ := strconv.Atoi(string(r.Key))
			if n, _ := strconv.Atoi(string(r.Value)); n != got[w] {
				t.Fatalf("partition %d offset %d: writer %d, record %d, want %d", partition, r.Offset, w, n, got[w])
			}
			got[w]++
		}
	}
	for w := range writers {
		if got[w] != counts[w] {
			t.Errorf("writer %d: %d of %d records", w, got[w], counts[w])
		}
	}
	t.Logf("records by writer %v, slowest round %v", counts, slowest)
}
