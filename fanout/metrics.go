package fanout

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/fault"
)

type metrics struct {
	connections  prometheus.Gauge
	opened       *prometheus.CounterVec
	refused      *prometheus.CounterVec
	closed       *prometheus.CounterVec
	events       prometheus.Counter
	deliveries   prometheus.Counter
	repeats      prometheus.Counter
	streams      prometheus.Gauge
	streamErrors *prometheus.CounterVec
	latency      prometheus.Histogram
	queued       prometheus.Gauge
	replaying    prometheus.Gauge
	replayed     prometheus.Counter
	historyReads prometheus.Counter
	historyBytes prometheus.Gauge
	presence     *prometheus.CounterVec
	rebalanced   prometheus.Counter
	stateAgents  prometheus.Gauge
	stateCalls   prometheus.Gauge
	stateLag     prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		connections: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_fanout_connections", Help: "Subscribers connected to this node."}),
		opened: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_fanout_opened_total", Help: "Subscribers admitted, by transport."}, []string{"transport"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_fanout_refused_total", Help: "Subscribers refused before the upgrade, by the kind of fault."}, []string{"kind"}),
		closed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_fanout_closed_total", Help: "Subscribers disconnected, by close code; 1006 is a broken connection."}, []string{"code"}),
		events: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_fanout_events_total", Help: "Events read from the normalized topic."}),
		deliveries: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_fanout_deliveries_total", Help: "Events put on a live subscriber's queue."}),
		repeats: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_fanout_repeats_total", Help: "Events dropped because their source record had been delivered before."}),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_fanout_partitions_followed", Help: "Partitions this node follows now."}),
		streamErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_fanout_stream_errors_total", Help: "Faults while following or replaying, by kind."}, []string{"kind"}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:                        "trunkline_fanout_delivery_latency_seconds",
			Help:                        "From the raw record's Kafka timestamp to the socket write, sampled once for each group of writes.",
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160,
			NativeHistogramMinResetDuration: time.Hour,
			Buckets:                         []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60}}),
		queued: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_fanout_queued_bytes", Help: "Bytes of memory that the queues of all subscribers of this node keep, shared batches counted once; measured once a second."}),
		replaying: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_fanout_replays", Help: "Subscribers that are replaying history."}),
		replayed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_fanout_replayed_total", Help: "Events delivered by replays."}),
		historyReads: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_fanout_history_reads_total", Help: "Reads from Kafka for history older than the ring."}),
		historyBytes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_fanout_history_bytes", Help: "Bytes of history older than the ring that replays hold in memory."}),
		presence: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_fanout_presence_total", Help: "Updates of the shared connection state, by result."}, []string{"result"}),
		rebalanced: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_fanout_rebalanced_total", Help: "Subscribers disconnected because this node had more than its share of the cluster's connections."}),
		stateAgents: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_fanout_snapshot_agents", Help: "Agents in the state, of all accounts, while snapshots are asked for."}),
		stateCalls: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_fanout_snapshot_calls", Help: "Calls in the state, of all accounts, while snapshots are asked for."}),
		stateLag: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_fanout_snapshot_lag_messages", Help: "Records of cc.state that have been written but not read yet, over all partitions, while snapshots are asked for."}),
	}
	reg.MustRegister(m.connections, m.opened, m.refused, m.closed, m.events, m.deliveries, m.repeats, m.streams,
		m.streamErrors, m.latency, m.queued, m.replaying, m.replayed, m.historyReads, m.historyBytes, m.presence, m.rebalanced,
		m.stateAgents, m.stateCalls, m.stateLag)
	for _, transport := range []string{transportWebSocket, transportEventStream} {
		m.opened.WithLabelValues(transport)
	}
	for _, kind := range []fault.Kind{fault.KindInvalid, fault.KindUnauthenticated, fault.KindForbidden, fault.KindGone,
		fault.KindUpgrade, fault.KindLimited, fault.KindUnavailable, fault.KindInternal} {
		m.refused.WithLabelValues(string(kind))
	}
	for _, d := range disconnects {
		m.closed.WithLabelValues(codeLabel(d.Code))
	}
	m.closed.WithLabelValues("other")
	for _, kind := range []string{"read", "hole", "not_a_message", "replay", "accounts", "snapshot"} {
		m.streamErrors.WithLabelValues(kind)
	}
	for _, result := range []string{"ok", "failed"} {
		m.presence.WithLabelValues(result)
	}
	return m
}

func (m *metrics) setSnapshotSizes(agents, calls int, lag int64) {
	m.stateAgents.Set(float64(agents))
	m.stateCalls.Set(float64(calls))
	m.stateLag.Set(float64(lag))
}

func (m *metrics) countMatches(deliveries, repeats int) {
	m.deliveries.Add(float64(deliveries))
	if repeats > 0 {
		m.repeats.Add(float64(repeats))
	}
}
