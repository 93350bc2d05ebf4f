package fanout

import (
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/fanout/conn"
	"trunkline/internal/fault"
	"trunkline/internal/metric"
)

type metrics struct {
	connections  prometheus.Gauge
	opened       *prometheus.CounterVec // transport
	refused      *prometheus.CounterVec // kind
	closed       *prometheus.CounterVec // code
	events       prometheus.Counter
	deliveries   prometheus.Counter
	repeats      prometheus.Counter
	streams      prometheus.Gauge
	streamErrors *prometheus.CounterVec // kind
	latency      prometheus.Histogram
	queued       prometheus.Gauge
	replaying    prometheus.Gauge
	replayed     prometheus.Counter
	historyReads prometheus.Counter
	historyBytes prometheus.Gauge
	presence     *prometheus.CounterVec // result
	rebalanced   prometheus.Counter
	stateAgents  prometheus.Gauge
	stateCalls   prometheus.Gauge
	stateLag     prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := metric.With(reg)
	latency := metric.NativeHistogram("trunkline_fanout_delivery_latency_seconds",
		"From the raw record's Kafka timestamp to the socket write, sampled once for each group of writes.", 160)
	latency.Buckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60}
	m := &metrics{
		connections: f.Gauge("trunkline_fanout_connections", "Subscribers connected to this node."),
		opened:      f.CounterVec("trunkline_fanout_opened_total", "Subscribers admitted, by transport.", "transport"),
		refused: f.CounterVec("trunkline_fanout_refused_total",
			"Subscribers refused before the upgrade, by the kind of fault.", "kind"),
		closed: f.CounterVec("trunkline_fanout_closed_total",
			"Subscribers disconnected, by close code; 1006 is a broken connection.", "code"),
		events:     f.Counter("trunkline_fanout_events_total", "Events read from the normalized topic."),
		deliveries: f.Counter("trunkline_fanout_deliveries_total", "Events put on a live subscriber's queue."),
		repeats: f.Counter("trunkline_fanout_repeats_total",
			"Events dropped because their source record had been delivered before."),
		streams: f.Gauge("trunkline_fanout_partitions_followed",
			"Partitions of cc.evt that this node follows: those in which its subscribers may see an account, for 30 s after the last of them."),
		streamErrors: f.CounterVec("trunkline_fanout_stream_errors_total",
			"Faults while following or replaying, by kind.", "kind"),
		latency: f.NewHistogram(latency),
		queued: f.Gauge("trunkline_fanout_queued_bytes",
			"Bytes of memory that the queues of all subscribers of this node keep, shared batches counted once; measured once a second."),
		replaying: f.Gauge("trunkline_fanout_replays", "Subscribers that are replaying history."),
		replayed:  f.Counter("trunkline_fanout_replayed_total", "Events delivered by replays."),
		historyReads: f.Counter("trunkline_fanout_history_reads_total",
			"Reads from Kafka for history older than the ring."),
		historyBytes: f.Gauge("trunkline_fanout_history_bytes",
			"Bytes of history older than the ring that replays hold in memory; 0 after 5 s without replays."),
		presence: f.CounterVec("trunkline_fanout_presence_total",
			"Updates of the shared connection state, by result.", "result"),
		rebalanced: f.Counter("trunkline_fanout_rebalanced_total",
			"Subscribers disconnected because this node had more than its share of the cluster's connections (fanout.rebalance_time)."),
		stateAgents: f.Gauge("trunkline_fanout_snapshot_agents",
			"Agents in the state, of all accounts, while snapshots are asked for."),
		stateCalls: f.Gauge("trunkline_fanout_snapshot_calls",
			"Calls in the state, of all accounts, while snapshots are asked for."),
		stateLag: f.Gauge("trunkline_fanout_snapshot_lag_messages",
			"Records of cc.state that have been written but not read yet, over all partitions, while snapshots are asked for."),
	}
	metric.Init(m.opened, transportWebSocket, transportEventStream)
	metric.Init(m.refused, fault.KindInvalid, fault.KindUnauthenticated, fault.KindForbidden, fault.KindGone,
		fault.KindUpgrade, fault.KindLimited, fault.KindUnavailable, fault.KindInternal)

	for _, d := range disconnects {
		m.closed.WithLabelValues(codeLabel(d.Code))
	}

	m.closed.WithLabelValues("other")
	metric.Init(m.streamErrors, "read", "hole", "not_a_message", "replay", "accounts", "snapshot")
	metric.Init(m.presence, "ok", "failed")

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

// disconnects has a Disconnect of each close code.
var disconnects = []conn.Disconnect{DisconnectNormal, DisconnectSilent, DisconnectBroken, DisconnectProtocolError,
	DisconnectEventsLost, DisconnectRestart, DisconnectTokenExpired, DisconnectAccessRevoked, DisconnectTooSlow,
	DisconnectReplaced}

// codeLabel returns the metric label of a close code: "other" for codes that this
// server does not send.
func codeLabel(code int) string {
	if !slices.ContainsFunc(disconnects, func(d conn.Disconnect) bool { return d.Code == code }) {
		return "other"
	}
	return strconv.Itoa(code)
}
