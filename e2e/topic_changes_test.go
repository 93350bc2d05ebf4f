package e2e

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	wire "trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/testservice"
)

// A topic that is deleted while nodes run is made again: events of known accounts flow on behind the first event of
// a new one.
func TestADeletedTopicIsMadeAgain(t *testing.T) {
	t.Parallel()
	c := allRolesCluster(t)
	c.createAccountAndUser(t, "late", "demo")
	token := c.channelNodes[0].login(t, apiPaths, user("alice"))
	s := c.channelNodes[0].subscribe(t, subscription{paths: apiPaths, token: token})
	c.ingestNode.postAccepted(t, c.key, "svc.cc", typeJSON, record("demo", 0), 1)
	s.awaitCount(t, 1)

	for n, topic := range []string{wire.TopicAccounts, wire.TopicState} {
		testservice.DeleteTopic(t, c.brokers, c.prefix+topic)
		deleted := time.Now()
		c.ingestNode.postAccepted(t, c.key, "svc.cc", typeJSON, record("late", n), 1)
		c.ingestNode.postAccepted(t, c.key, "svc.cc", typeJSON, record("demo", n), 1)
		s.awaitCount(t, 1+2*(n+1))
		t.Logf("without %s the events take %v", topic, time.Since(deleted).Round(100*time.Millisecond))

		eventually(t, topic+" to be there again", func() error {
			_, err := c.kafka(t).Partitions(t.Context(), topic)
			return err
		})
	}
}

// A node that may not make topics says which are missing.
func TestReadinessNamesMissingTopics(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t)
	n := c.nodes[0]
	n.kill(t)
	n.settings["TRUNKLINE_KAFKA_CREATE_TOPICS"] = "false"
	n.start(t)
	testservice.DeleteTopic(t, c.brokers, wire.TopicStats)

	eventually(t, "the missing topic in /readyz", func() error {
		status, text, err := n.probe("/readyz")
		if err == nil && (status != http.StatusOK || !strings.Contains(text, wire.TopicStats)) {
			err = fmt.Errorf("%d %s", status, text)
		}
		return err
	})
}

// Partitions that are added to the raw topics of a running service get their events out, and nobody logs an error
// until the topics that follow have them too.
func TestAddedPartitionsLogNoErrors(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t testing.TB) *cluster{
		"embedded": func(t testing.TB) *cluster { return embeddedCluster(t) }, "kafka": allRolesCluster,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t)
			token := c.channelNodes[0].login(t, apiPaths, user("alice"))
			s := c.channelNodes[0].subscribe(t, subscription{paths: apiPaths, token: token})
			opened := c.kafka(t)
			before, err := opened.Partitions(t.Context(), wire.TopicRaw)
			if err != nil {
				t.Fatal(err)
			}

			have := before
			for _, added := range []int{1, 8, 24} {
				for _, topic := range []string{wire.TopicRaw, wire.TopicCDRRaw} {
					if err := opened.EnsurePartitions(t.Context(), topic, have+added); err != nil {
						t.Fatal(err)
					}
				}

				producer := opened.NewProducer(kafka.ProducerConfig{})
				for partition := have; partition < have+added; partition++ {
					err := producer.Produce(t.Context(), kafka.Record{Topic: wire.TopicRaw, Partition: partition,
						Key: []byte("demo"), Value: []byte(record("demo", partition))})
					if err != nil {
						t.Fatal(err)
					}
				}

				if err := producer.Close(t.Context()); err != nil {
					t.Fatal(err)
				}

				have += added
				s.awaitCount(t, have-before)
			}

			for _, n := range c.nodes {
				text, err := os.ReadFile(n.log)
				if err != nil {
					t.Fatal(err)
				}

				for line := range strings.Lines(string(text)) {
					if strings.Contains(line, "level=ERROR") {
						t.Errorf("%s logs %s", n.name, line)
					}
				}
			}
		})
	}
}
