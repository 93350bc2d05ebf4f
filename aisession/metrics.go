package aisession

import (
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/aiprotocol"
)

// Metric labels for a provider's messages, in addition to the problems of aiprotocol.
const (
	problemBinary   = "binary" // a binary frame
	problemEmpty    = "empty"  // a media message without audio
	problemMarks    = "marks"  // more marks than can be stored
	problemRequests = "asks"   // more transfers and keys than can be queued
)

type metrics struct {
	active          *prometheus.GaugeVec
	started         *prometheus.CounterVec
	refused         *prometheus.CounterVec
	ended           *prometheus.CounterVec
	firstAudio      prometheus.Histogram
	turnGap         prometheus.Histogram
	underruns       prometheus.Counter
	overruns        prometheus.Counter
	reconnects      prometheus.Counter
	connectFailures prometheus.Counter
	malformed       *prometheus.CounterVec
	dropped         dropped
	unannounced     prometheus.Counter
}

// dropped has the counters of lost audio, messages and events.
type dropped struct{ toProvider, control, undecodable, late, overrun, events prometheus.Counter }

// Reasons for which Open refuses a session.
const (
	refusedNode     = "node_limit"
	refusedAccount  = "account_limit"
	refusedDraining = "draining"
	refusedProvider = "provider"
)

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		active: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "trunkline_aisession_active", Help: "Open sessions of this node, by ingress."}, []string{"way"}),
		started: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_aisession_started_total", Help: "Sessions connected to their provider, by ingress."}, []string{"way"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_aisession_refused_total", Help: "Sessions refused, by reason."}, []string{"why"}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_aisession_ended_total", Help: "Sessions ended, by reason."}, []string{"reason"}),
		firstAudio: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "trunkline_aisession_first_audio_seconds", Help: "Time from the start message of a connection to the provider's first audio.",
			Buckets: []float64{.05, .1, .25, .5, .75, 1, 1.5, 2, 3, 5, 10, 30}}),
		turnGap: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "trunkline_aisession_turn_gap_seconds", Help: "Time from the end of the caller's speech to the playing of the provider's answer.",
			Buckets: []float64{.05, .1, .25, .5, .75, 1, 1.5, 2, 3, 5, 10, 30}}),
		underruns: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_aisession_underruns_total", Help: "Gaps of less than 200 ms in a provider's audio, which arrived late."}),
		overruns: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_aisession_overrun_seconds_total", Help: "Audio of providers dropped because the playout buffer was full."}),
		reconnects: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_aisession_reconnects_total", Help: "Reconnections to providers."}),
		connectFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_aisession_connect_failures_total", Help: "Failed attempts to connect to a provider."}),
		malformed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_aisession_ignored_messages_total", Help: "Messages of providers ignored, by problem."}, []string{"problem"}),
		unannounced: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_aisession_unannounced_total", Help: "AudioSocket connections refused because the call was not announced, or the UUID of its dialplan was invalid, expired or used before."}),
	}
	droppedFrames := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trunkline_aisession_dropped_total", Help: "Frames, packets and messages dropped, by kind and reason."}, []string{"what"})
	m.dropped = dropped{
		toProvider:  droppedFrames.WithLabelValues("frame_to_provider"), // the provider does not read
		control:     droppedFrames.WithLabelValues("message_to_provider"),
		undecodable: droppedFrames.WithLabelValues("undecodable"),
		late:        droppedFrames.WithLabelValues("late_packet"),
		overrun:     droppedFrames.WithLabelValues("overrun_packet"),
		events:      droppedFrames.WithLabelValues("event"),
	}
	for _, way := range Ingresses() {
		m.active.WithLabelValues(way)
		m.started.WithLabelValues(way)
	}
	for _, why := range []string{refusedNode, refusedAccount, refusedDraining, refusedProvider} {
		m.refused.WithLabelValues(why)
	}
	for _, reason := range Reasons() {
		m.ended.WithLabelValues(string(reason))
	}
	for _, problem := range aiprotocol.Problems() {
		m.malformed.WithLabelValues(string(problem))
	}
	for _, problem := range []string{problemBinary, problemEmpty, problemMarks, problemRequests} {
		m.malformed.WithLabelValues(problem)
	}
	reg.MustRegister(m.active, m.started, m.refused, m.ended, m.firstAudio, m.turnGap, m.underruns, m.overruns,
		m.reconnects, m.connectFailures, m.malformed, droppedFrames, m.unannounced)
	return m
}
