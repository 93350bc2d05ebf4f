package embedded

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"trunkline/internal/atomicfile"
)

const (
	epochsName   = "epochs.json"
	raiseTimeout = 30 * time.Second
)

// epochs holds the newest leader epoch that each partition ever had, by topic id in
// hexadecimal.
type epochs map[string]map[int32]int32

// raiseEpochs gives every partition a new leader epoch, as a leader election does in
// Kafka: the log may have lost its end while the broker was down (a damaged segment is
// truncated), and clients detect this by comparing epochs. kfake keeps epochs over a
// restart only if the log ends where it did, so they are also stored here. Call it
// before any records are written.
func (b *Broker) raiseEpochs(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, raiseTimeout)
	defer cancel()

	topics, err := b.client.Topics(ctx)
	if err != nil {
		return err
	}

	path := filepath.Join(b.cfg.Dir, epochsName)
	stored, err := readEpochs(path)
	if err != nil {
		return err
	}

	raised := epochs{}
	for _, topic := range topics {
		info := b.cluster.TopicInfo(topic.Name)
		if info == nil {
			continue
		}

		id := hex.EncodeToString(info.TopicID[:])
		raised[id] = map[int32]int32{}
		for _, p := range b.cluster.PartitionInfos(topic.Name) {
			raised[id][p.Partition] = max(p.Epoch, stored[id][p.Partition]) + 1
		}
	}

	// Before any epoch is raised: after a crash in between the next start must go beyond these.
	if err := raised.write(path); err != nil {
		return err
	}

	for _, topic := range topics {
		if err := b.setEpochs(topic.Name, raised); err != nil {
			return err
		}
	}

	return nil
}

// setEpochs moves the partitions of a topic to their current leader, which raises the
// epoch by one each time, until their epochs are the stored ones.
func (b *Broker) setEpochs(topic string, want epochs) error {
	info := b.cluster.TopicInfo(topic)
	if info == nil {
		return nil
	}

	id := hex.EncodeToString(info.TopicID[:])
	for _, p := range b.cluster.PartitionInfos(topic) {
		for epoch := p.Epoch; epoch < want[id][p.Partition]; epoch++ {
			if err := b.cluster.MoveTopicPartition(topic, p.Partition, p.Leader); err != nil {
				return fmt.Errorf("raising the leader epoch of %s/%d: %w", topic, p.Partition, err)
			}
		}
	}

	return nil
}

func readEpochs(path string) (epochs, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading leader epochs: %w", err)
	}

	var e epochs
	if err := json.Unmarshal(b, &e); err != nil {
		return nil, fmt.Errorf("reading leader epochs from %s: %w", path, err)
	}

	return e, nil
}

// write replaces the file; a crash leaves the old one or the new one.
func (e epochs) write(path string) error {
	b, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("writing leader epochs: %w", err)
	}
	if err := atomicfile.WriteBytes(path, 0o600, b); err != nil {
		return fmt.Errorf("writing leader epochs: %w", err)
	}
	return nil
}
