package testservice

import (
	"fmt"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl/scram"
)

func TestClusterGoesOnWithoutABroker(t *testing.T) {
	if testing.Short() {
		t.Skip("starts three brokers")
	}
	t.Parallel()
	cluster := SecureKafkaCluster(t, 3)
	login, err := scram.Mechanism(scram.SHA512, cluster.User, cluster.Password)
	if err != nil {
		t.Fatal(err)
	}
	transport := &kafka.Transport{SASL: login, MetadataTTL: 200 * time.Millisecond}
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(cluster.Brokers()...), Transport: transport, Timeout: 5 * time.Second}
	topic := newTopic(t, client, 3)
	eventually(t, "producing to all", func() error { return produce(t, client, topic, "before") })

	cluster.Kill(t, 0)
	eventually(t, "producing to two of three", func() error { return produce(t, client, topic, "without one") })
	cluster.Start(t, 0)
	eventually(t, "finding both records", func() error {
		last, err := lastOffset(t, client, topic)
		if err == nil && last < 2 { // a retry may have stored one twice
			err = fmt.Errorf("%d records", last)
		}
		return err
	})

	anonymous := &kafka.Transport{}
	defer anonymous.CloseIdleConnections()
	client = &kafka.Client{Addr: client.Addr, Transport: anonymous, Timeout: 5 * time.Second}
	if _, err := client.Metadata(t.Context(), &kafka.MetadataRequest{}); err == nil {
		t.Error("a client that does not log in is served")
	}

	frozen := cluster.members[1]
	cluster.Pause(t, 1)
	if err := probeKafka(t.Context(), frozen.Internal, frozen.Node, 1); err == nil {
		t.Error("a frozen broker answers")
	}
	cluster.Resume(t, 1)
	eventually(t, "asking a broker that goes on", func() error {
		return probeKafka(t.Context(), frozen.Internal, frozen.Node, 1)
	})
}
