package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"

	"trunkline/cmd/trunkline-bench/load"
	"trunkline/event"
	"trunkline/identity"
	"trunkline/internal/kafka"
)

// pipelineRun is the state of one run.
type pipelineRun struct {
	*pipelineBench
	runID          string
	clock          load.Clock
	client         *http.Client
	observer       observer
	follower       *follower
	deadLetters    *deadLetters
	eventFlow      *flow
	callRecordFlow *flow    // nil without call records
	lookups        *lookups // nil without --reports
	report         pipelineReport
	cleanup        cleanups
}

// spareConnections is the number of connections for other requests than posts: look-ups, metrics.
const spareConnections = 4

// flow is one kind of record on its way through the server.
type flow struct {
	topic   string // raw topic
	source  *load.Source
	checker *load.TopicChecker
	http    *httpSink // nil if records go directly to the topic
}

// run executes a run. Once the measurement has begun, it returns a report even after an error.
func (b *pipelineBench) run(ctx context.Context) error {
	r := &pipelineRun{pipelineBench: b, runID: rand.Text()[:load.RunLength], clock: load.NewClock()}
	defer r.cleanup.run()

	if err := r.prepare(ctx); err != nil {
		return unlessInterrupted(ctx, err)
	}
	if err := r.awaitFirstRecords(ctx); err != nil {
		return unlessInterrupted(ctx, err)
	}

	err := r.measure(ctx)
	r.report.Interrupted = ctx.Err() != nil
	return b.printReport(&r.report, err)
}

// prepare creates the accounts, the credentials, and the readers of the normalized topics.
func (r *pipelineRun) prepare(ctx context.Context) (err error) {
	// Events and call records each have as many posts at once.
	r.client, err = r.clientWithConnections(2*r.connections + spareConnections)
	if err != nil {
		return err
	}

	r.observer = observer{pids: r.pids, metrics: r.metrics, client: r.client}

	cluster, closeKafka, err := r.openServerKafka(ctx)
	if err != nil {
		return fmt.Errorf("pipeline reads the server's topics, but its Kafka does not answer: %w: "+
			"give the server's --kafka.brokers, or the --data_dir of a server with an embedded broker", err)
	}

	r.cleanup.add(func() {
		if err := closeKafka(); err != nil {
			r.printf("closing Kafka: %v", err)
		}
	})

	if r.through == throughHTTP || r.reports {
		if err := r.checkServer(ctx, r.client); err != nil {
			return err
		}
	}

	accounts, err := r.openAccounts(ctx, r.runID, identity.RoleUser)
	if err != nil {
		return err
	}

	r.cleanup.add(accounts.delete)
	r.cleanup.add(func() {
		r.reportLeftovers(accounts, "the run's events and call records, on the topics and in the reports")
	})
	r.follower, r.deadLetters = newFollower(ctx, cluster), newDeadLetters(r.runID)
	r.cleanup.add(r.follower.close)

	if err := r.follower.follow(ctx, event.TopicDead, r.deadLetters.add); err != nil {
		return err
	}

	r.eventFlow, err = r.newFlow(ctx, cluster, accounts, rawEvents, event.TopicEvents, nil)
	if err != nil {
		return err
	}

	if r.callRecordRate > 0 {
		r.callRecordFlow, err = r.newFlow(ctx, cluster, accounts, rawCallRecords, event.TopicCDR, load.CallRecord)
		if err != nil {
			return err
		}
	}

	r.report = pipelineReport{
		Scenario: "pipeline", Through: r.through, Transport: scheme(r.url), Accounts: r.accounts, Rate: r.rate,
		Batch: r.batch, Connections: min(r.connections, r.accounts), EventBytes: r.size,
		CallRecordRate: r.callRecordRate,
	}

	return nil
}

// newFlow returns a flow and starts to follow its output topic.
func (r *pipelineRun) newFlow(ctx context.Context, cluster *kafka.Cluster, a *benchAccounts, in rawTopic, out string,
	encode load.EventEncoder) (*flow, error) {
	f := &flow{topic: in.topic, checker: load.NewTopicChecker(r.runID, len(a.ids), r.clock)}
	var sink load.Sink
	if r.through == throughHTTP {
		made, err := r.httpSink(ctx, r.client, a)
		if err != nil {
			return nil, err
		}
		made.format = in.format
		f.http, sink = made, made
	} else {
		made := &kafkaSink{producer: cluster.NewProducer(kafka.ProducerConfig{}), accounts: a.ids, to: in}
		r.cleanup.add(func() { made.close(ctx, &r.bench) })
		sink = made
	}

	cfg := load.SourceConfig{
		Run: r.runID, Accounts: a.ids, Size: r.size, Clock: r.clock, Encode: encode, Publishers: r.connections,
		Batch: r.batch,
	}

	if encode != nil {
		cfg.Batch = 1 // a PBX posts each call record by itself
		for _, id := range a.ids {
			cfg.Size = max(cfg.Size, encode.MinSize(id))
		}
	}

	if encode != nil && r.reports {
		r.lookups = newLookups(r, a, sink)
		if err := r.lookups.login(ctx); err != nil {
			return nil, err
		}
		sink = r.lookups
	}

	var err error
	f.source, err = load.NewSource(cfg, sink)
	if err != nil {
		return nil, err
	}

	return f, r.follower.follow(ctx, out, func(record *kafka.Record) {
		f.checker.Record(record.Partition, sourceOffset(record), record.Value)
	})
}

// flows returns the flows of the run.
func (r *pipelineRun) flows() []*flow {
	if r.callRecordFlow == nil {
		return []*flow{r.eventFlow}
	}
	return []*flow{r.eventFlow, r.callRecordFlow}
}

func scheme(url string) string {
	name, _, _ := strings.Cut(url, ":")
	return name
}
