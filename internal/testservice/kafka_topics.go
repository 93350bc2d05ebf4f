package testservice

import (
	"testing"

	"github.com/segmentio/kafka-go"
)

// DeleteTopic deletes a topic as an operator would.
func DeleteTopic(t testing.TB, brokers []string, topic string) {
	t.Helper()
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Transport: &kafka.Transport{}}
	defer client.Transport.(*kafka.Transport).CloseIdleConnections()

	response, err := client.DeleteTopics(t.Context(), &kafka.DeleteTopicsRequest{Topics: []string{topic}})
	if err == nil {
		err = response.Errors[topic]
	}
	if err != nil {
		t.Fatalf("deleting topic %s: %v", topic, err)
	}
}
