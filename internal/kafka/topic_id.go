package kafka

import (
	"context"
	"database/sql/driver"
	"encoding/base64"
	"errors"
	"fmt"
	"time"
)

// TopicID is the id that Kafka assigned to a topic at its creation. A recreated topic
// with the same name has another id.
type TopicID [16]byte

// String returns the id in the format of Kafka's tools.
func (id TopicID) String() string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// ParseTopicID parses the format of String.
func ParseTopicID(s string) (id TopicID, err error) {
	if len(s) != topicIDChars {
		return TopicID{}, errors.New("not a topic id")
	}
	_, err = base64.RawURLEncoding.Strict().Decode(id[:], []byte(s))
	if err != nil {
		return TopicID{}, errors.New("not a topic id")
	}
	return id, nil
}

// topicIDChars is the length of a TopicID as text.
const topicIDChars = 22

// IsZero reports whether the id is unknown.
func (id TopicID) IsZero() bool { return id == TopicID{} }

// Value implements driver.Valuer: the text of String, "" for an unknown id.
func (id TopicID) Value() (driver.Value, error) {
	if id.IsZero() {
		return "", nil
	}
	return id.String(), nil
}

// Scan implements sql.Scanner for what Value returns.
func (id *TopicID) Scan(stored any) (err error) {
	*id = (TopicID{})
	if stored == "" {
		return nil
	}

	text, _ := stored.(string)
	*id, err = ParseTopicID(text)
	if err != nil {
		return fmt.Errorf("reading a topic id: %w", err)
	}

	return nil
}

// topicIDMaxAge bounds how long TopicID and CheckPosition may miss that a topic was
// recreated.
const topicIDMaxAge = 2 * time.Second

// TopicID returns a topic's id, which may be up to two seconds old. It returns
// fault.KindNotFound if there is no such topic.
func (c *Cluster) TopicID(ctx context.Context, topic string) (TopicID, error) {
	var id TopicID
	err := withRetries(ctx, func() error {
		t, err := c.leaders.freshTopic(ctx, c.withPrefix(topic), topicIDMaxAge)
		if err == nil {
			id = t.id
		}
		return err
	})
	return id, asTopicFault(err, topic, "looking up a topic's id")
}
