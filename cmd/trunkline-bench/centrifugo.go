package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/golang-jwt/jwt/v5"

	"trunkline/cmd/trunkline-bench/load"
	"trunkline/event/topics"
	"trunkline/internal/kafka"
)

// peerCentrifugo is Centrifugo, measured in the same way as Trunkline: the same events on the same
// Kafka, the same sockets. Its subscribers are unidirectional WebSockets whose tokens name the
// channel, and its Kafka consumer publishes to the channel that a header names.
const (
	peerCentrifugo = "centrifugo"

	centrifugoPath          = "/connection/uni_websocket"
	centrifugoTopic         = "centrifugo" // its consumer's topic
	centrifugoChannelHeader = "centrifugo-channels"
)

// openCentrifugo returns the channels of a run, the sink of their events, and the subscribers.
func (r *fanoutRun) openCentrifugo(ctx context.Context) (
	channels []string, sink load.Sink, groups []load.Group, err error) {
	r.report.Server = r.peer
	for i := range r.accounts {
		channels = append(channels, fmt.Sprintf("bench-%d", i+1))
	}

	groups, err = r.splitSubscribers(r.accounts, func(int) (string, error) { return "", nil })
	if err != nil {
		return nil, nil, nil, err
	}

	for i := range groups {
		groups[i].Query, err = r.centrifugoQuery(channels[i])
		if err != nil {
			return nil, nil, nil, err
		}
	}

	s, err := r.p.Settings()
	if err != nil {
		return nil, nil, nil, err
	}

	cluster, closeKafka, err := r.openServerKafka(ctx)
	if err != nil {
		return nil, nil, nil, err
	}

	r.cleanup.add(func() {
		if err := closeKafka(); err != nil {
			r.printf("closing Kafka: %v", err)
		}
	})

	// As many partitions as Trunkline's topics have: the broker's cost depends on their number.
	err = cluster.EnsureTopics(ctx, []topics.Spec{{Name: centrifugoTopic, Partitions: s.Kafka.Partitions}})
	if err != nil {
		return nil, nil, nil, err
	}

	events := &centrifugoSink{kafkaSink{producer: cluster.NewProducer(kafka.ProducerConfig{}), accounts: channels}}
	r.cleanup.add(func() { events.close(ctx, &r.bench) })
	return channels, events, groups, nil
}

// centrifugoQuery returns the query of a subscriber of one channel.
func (r *fanoutRun) centrifugoQuery(channel string) (url.Values, error) {
	claims := jwt.MapClaims{"sub": "bench", "channels": []string{channel}}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(r.peerSecret))
	if err != nil {
		return nil, fmt.Errorf("signing the token of channel %s: %w", channel, err)
	}

	connect, err := json.Marshal(map[string]string{"token": token})
	return url.Values{"cf_connect": {string(connect)}}, err
}

// centrifugoSink publishes to the topic of Centrifugo's consumer.
type centrifugoSink struct{ kafkaSink }

func (s *centrifugoSink) Publish(ctx context.Context, events []load.Event) error {
	records := make([]kafka.Record, len(events))
	for i, e := range events {
		channel := []byte(s.accounts[e.Stream])
		records[i] = kafka.Record{
			Topic: centrifugoTopic, Partition: kafka.AnyPartition, Key: channel, Value: e.JSON,
			Headers: []kafka.Header{{Key: centrifugoChannelHeader, Value: channel}},
		}
	}
	return s.producer.Produce(ctx, records...)
}
