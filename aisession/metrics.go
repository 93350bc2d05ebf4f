package aisession

import (
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/aiprotocol"
	"trunkline/internal/metric"
)

// Metric labels for a provider's messages, in addition to the problems of aiprotocol.
const (
	problemBinary   = "binary"   // a binary frame
	problemEmpty    = "empty"    // a media message without audio
	problemReported = "reported" // an error that the provider reports
	problemMarks    = "marks"    // more marks than can be stored
	problemRequests = "requests" // more transfers and keys than can be queued
	problemKeys     = "keys"     // a key that could not be sent in the call
)

type metrics struct {
	active          *prometheus.GaugeVec   // by ingress
	started         *prometheus.CounterVec // by ingress
	refused         *prometheus.CounterVec // by the reasons below
	ended           *prometheus.CounterVec // by EndReason
	firstAudio      prometheus.Histogram   // seconds from start to the provider's first audio
	responseDelay   prometheus.Histogram   // seconds from the caller's speech to the provider's answer
	underruns       prometheus.Counter     // gaps in a provider's audio
	overruns        prometheus.Counter     // seconds of a provider's audio for which the playout had no room
	reconnects      prometheus.Counter
	connectFailures prometheus.Counter
	ignoredMessages *prometheus.CounterVec // by problem
	dropped         dropCounters
	rejectedUUIDs   prometheus.Counter // AudioSocket calls that were neither announced nor signed
}

// dropCounters counts lost audio, messages and events.
type dropCounters struct{ toProvider, control, undecodable, late, overrun, events prometheus.Counter }

// Reasons for which Open refuses a session.
const (
	refusedNode     = "node_limit"
	refusedAccount  = "account_limit"
	refusedDraining = "draining"
	refusedProvider = "provider"
	refusedHungUp   = "caller_hangup" // the call ended before the provider was reached
)

func newMetrics(reg prometheus.Registerer) *metrics {
	f := metric.With(reg)
	buckets := []float64{.05, .1, .25, .5, .75, 1, 1.5, 2, 3, 5, 10, 30}
	m := &metrics{
		active: f.GaugeVec("trunkline_aisession_active", "Open sessions of this node, by ingress.", "ingress"),
		started: f.CounterVec("trunkline_aisession_started_total",
			"Sessions connected to their provider, by ingress.", "ingress"),
		refused: f.CounterVec("trunkline_aisession_refused_total", "Sessions refused, by reason.", "reason"),
		ended:   f.CounterVec("trunkline_aisession_ended_total", "Sessions ended, by reason.", "reason"),
		firstAudio: f.Histogram("trunkline_aisession_first_audio_seconds",
			"Time from the start message of a connection to the provider's first audio.", buckets...),
		responseDelay: f.Histogram("trunkline_aisession_turn_gap_seconds",
			"Time from the end of the caller's speech to the playing of the provider's answer.", buckets...),
		underruns: f.Counter("trunkline_aisession_underruns_total",
			"Gaps of less than 200 ms in a provider's audio, which arrived late."),
		overruns: f.Counter("trunkline_aisession_overrun_seconds_total",
			"Audio of providers dropped because the playout buffer was full."),
		reconnects: f.Counter("trunkline_aisession_reconnects_total", "Reconnections to providers."),
		connectFailures: f.Counter("trunkline_aisession_connect_failures_total",
			"Failed attempts to connect to a provider."),
		ignoredMessages: f.CounterVec("trunkline_aisession_ignored_messages_total",
			"Messages of providers ignored, by problem.", "problem"),
		rejectedUUIDs: f.Counter("trunkline_aisession_unannounced_total",
			"AudioSocket connections refused because the call was not announced, or the UUID of its dialplan was invalid, expired or used before."),
	}

	droppedFrames := f.CounterVec("trunkline_aisession_dropped_total", "Frames, packets and messages dropped, by kind.",
		"kind")
	m.dropped = dropCounters{
		toProvider:  droppedFrames.WithLabelValues("frame_to_provider"), // the provider does not read
		control:     droppedFrames.WithLabelValues("message_to_provider"),
		undecodable: droppedFrames.WithLabelValues("undecodable"),
		late:        droppedFrames.WithLabelValues("late_packet"),
		overrun:     droppedFrames.WithLabelValues("overrun_packet"),
		events:      droppedFrames.WithLabelValues("event"),
	}

	for _, ingress := range Ingresses() {
		m.active.WithLabelValues(ingress)
		m.started.WithLabelValues(ingress)
	}

	metric.Init(m.refused, refusedNode, refusedAccount, refusedDraining, refusedProvider, refusedHungUp)
	metric.Init(m.ended, EndReasons()...)
	metric.Init(m.ignoredMessages, aiprotocol.Problems()...)
	metric.Init(m.ignoredMessages, problemBinary, problemEmpty, problemMarks, problemReported, problemRequests,
		problemKeys)

	return m
}
