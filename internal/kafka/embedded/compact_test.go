package embedded

import (
	"errors"
	"testing"

	"trunkline/internal/kafka"
)

// Whoever deletes a topic while it is compacted ends its compaction, and not the process.
func TestATopicIsDeletedWhileItIsCompacted(t *testing.T) {
	b := openBroker(t, Config{})
	if err := b.cluster.CreateTopic("kept", 1, map[string]string{"cleanup.policy": "compact"}); err != nil {
		t.Fatal(err)
	}
	if err := b.cluster.DeleteTopic("kept"); err != nil {
		t.Fatal(err)
	}

	c := &compaction{broker: b, partition: partition{"kept", 0}, last: map[string]int64{"k": 0}}
	err := c.appendAgain(t.Context(), []kafka.Record{{Topic: "kept", Key: []byte("k")}})
	if !errors.Is(err, errTopicDeleted) {
		t.Errorf("appending a piece: %v", err)
	}
	if err := c.deleteBefore(1); !errors.Is(err, errTopicDeleted) {
		t.Errorf("deleting a piece: %v", err)
	}
}
