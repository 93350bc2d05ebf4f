package normalizer

import (
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event"
	"trunkline/format"
	"trunkline/format/registry"
	"trunkline/internal/kafka"
	"trunkline/internal/metric"
)

// metrics of the package. All label values are bounded.
type metrics struct {
	records       *prometheus.CounterVec // format
	dead          *prometheus.CounterVec // topic, kind
	batch         prometheus.Histogram
	delay         prometheus.Histogram
	retries       prometheus.Counter
	lost          *prometheus.CounterVec // topic
	restarts      *prometheus.CounterVec // topic, kind
	repeats       prometheus.Counter
	sourceRepairs *prometheus.CounterVec // what

	stateEntries *prometheus.GaugeVec // kind
	rebuild      prometheus.Histogram
	stateRepairs prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := metric.With(reg)
	m := &metrics{
		records: f.CounterVec("trunkline_normalizer_records_total",
			"Records normalized and durable, by source format and result.", "format", "result"),
		dead: f.CounterVec("trunkline_dead_letters_total",
			"Records that could not be normalized, by raw topic and kind.", "topic", "kind"),
		batch: f.NewHistogram(
			metric.NativeHistogram("trunkline_normalizer_batch_records", "Raw records in one batch.", 100)),
		delay: f.NewHistogram(
			metric.NativeHistogram("trunkline_normalizer_delay_seconds",
				"Time from the Kafka timestamp of a batch's first record until the batch is durable.", 100)),
		retries: f.Counter("trunkline_normalizer_retries_total",
			"Waits of a partition because Kafka or the account store was unavailable."),
		lost: f.CounterVec("trunkline_normalizer_lost_records_total",
			"Raw records that were deleted or damaged before they were normalized.", "topic"),
		restarts: f.CounterVec("trunkline_normalizer_log_restarts_total",
			"Partitions of the raw topics, cc.evt and cc.state found truncated or created again. Acknowledged records may be lost.",
			"topic", "kind"),
		repeats: f.Counter("trunkline_normalizer_repeats_dropped_total",
			"Raw records dropped because an event with their identity was normalized before: with two feeds of one switch as many as messages, and none for a while means that one of them sends nothing."),
		sourceRepairs: f.CounterVec("trunkline_normalizer_repaired_total",
			"Texts and clocks of platforms' records that were repaired so that nothing was rejected, by what: text (bytes that are not UTF-8, or NUL, replaced), cut (longer than their field), clock (an impossible time or duration left out).",
			"what"),
		stateEntries: f.GaugeVec("trunkline_normalizer_state_entries",
			"Agents, calls and devices in the state of this process's partitions, including those that ended recently.",
			"kind"),
		rebuild: f.NewHistogram(
			metric.NativeHistogram("trunkline_normalizer_state_rebuild_seconds",
				"Time that a normalizer which takes over a partition needs to rebuild its state from cc.state and cc.evt.",
				100)),
		stateRepairs: f.Counter("trunkline_normalizer_state_repairs_total",
			"Records of cc.state written again because another normalizer of the same partition had overwritten them: a few at a rebalance are normal."),
	}
	metric.Init(m.sourceRepairs, repairedText, repairedCut, repairedClock)

	for _, kind := range stateKinds {
		m.stateEntries.WithLabelValues(string(kind))
	}

	for _, f := range registry.Formats() {
		m.initFormat(f.Name)
	}

	m.initFormat(formatUnknown)
	for _, topic := range []string{event.TopicRaw, event.TopicCDRRaw, event.TopicEvents, event.TopicState} {
		m.restarts.WithLabelValues(topic, string(kafka.GapTruncated))
		m.restarts.WithLabelValues(topic, string(kafka.GapRecreated))
	}

	for topic := range conversions {
		m.lost.WithLabelValues(topic)
		for _, kind := range deadLetterKinds {
			m.dead.WithLabelValues(topic, string(kind))
		}
	}

	return m
}

// Labels of sourceRepairs.
const (
	repairedText  = "text"
	repairedCut   = "cut"
	repairedClock = "clock"
)

const (
	resultNormalized = "normalized"
	resultDead       = "dead_letter"
)

// initFormat creates the counters of one format.
func (m *metrics) initFormat(format string) {
	m.records.WithLabelValues(format, resultNormalized)
	m.records.WithLabelValues(format, resultDead)
}

// counts has the counts of one batch until it is durable.
type counts struct {
	formats       map[string]*formatCount
	kinds         map[format.Kind]int
	repeats       int
	sourceRepairs event.CDRRepairs
}

type formatCount struct{ normalized, dead int }

func newCounts() counts {
	return counts{formats: make(map[string]*formatCount, len(registry.Formats())+1),
		kinds: make(map[format.Kind]int, len(deadLetterKinds))}
}

func (t *counts) format(name string) *formatCount {
	n := t.formats[name]
	if n == nil {
		n = new(formatCount)
		t.formats[name] = n
	}
	return n
}

func (t *counts) addSourceRepairs(n *event.CDRRepairs) {
	t.sourceRepairs.Text += n.Text
	t.sourceRepairs.Cut += n.Cut
	t.sourceRepairs.Clock += n.Clock
}

func (t *counts) reset() {
	for _, n := range t.formats {
		*n = formatCount{}
	}
	clear(t.kinds)
	t.repeats, t.sourceRepairs = 0, event.CDRRepairs{}
}

func (m *metrics) addCounts(topic string, t *counts) {
	for format, n := range t.formats {
		if n.normalized > 0 {
			m.records.WithLabelValues(format, resultNormalized).Add(float64(n.normalized))
		}
		if n.dead > 0 {
			m.records.WithLabelValues(format, resultDead).Add(float64(n.dead))
		}
	}

	m.repeats.Add(float64(t.repeats))
	m.sourceRepairs.WithLabelValues(repairedText).Add(float64(t.sourceRepairs.Text))
	m.sourceRepairs.WithLabelValues(repairedCut).Add(float64(t.sourceRepairs.Cut))
	m.sourceRepairs.WithLabelValues(repairedClock).Add(float64(t.sourceRepairs.Clock))

	for kind, n := range t.kinds {
		m.dead.WithLabelValues(topic, string(kind)).Add(float64(n))
	}
}
