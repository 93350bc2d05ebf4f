package rtp

import (
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/metric"
)

// Reasons for dropping a packet.
const (
	dropStranger   = iota // not from the leg's peer
	dropMalformed         // not an RTP packet
	dropControl           // RTCP on the media port
	dropUnwanted          // the leg has no receiver yet
	dropPayload           // a payload type that was not negotiated
	dropHeld              // the peer is on hold, or its address is not known
	dropUnsent            // sending failed
	dropUnreadable        // receiving failed
	dropForged            // SRTP that is not authentic, or replayed
	dropReasons           // their number
)

// metrics are those of all ports.
type metrics struct {
	inUse, available prometheus.Gauge
	received, sent   prometheus.Counter
	dropped          [dropReasons]prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := metric.With(reg)
	m := &metrics{
		inUse:     f.Gauge("trunkline_rtp_ports_in_use", "Media ports in use."),
		available: f.Gauge("trunkline_rtp_ports", "Media ports in the configured range."),
		received:  f.Counter("trunkline_rtp_packets_received_total", "Media packets received and accepted."),
		sent:      f.Counter("trunkline_rtp_packets_sent_total", "Media packets sent."),
	}

	dropped := f.CounterVec("trunkline_rtp_packets_dropped_total", "Media packets dropped, by reason.", "reason")
	for i, reason := range [dropReasons]string{
		dropStranger: "stranger", dropMalformed: "malformed", dropControl: "rtcp", dropUnwanted: "unwanted",
		dropPayload: "payload_type", dropHeld: "held", dropUnsent: "unsent", dropUnreadable: "unreadable",
		dropForged: "forged",
	} {
		m.dropped[i] = dropped.WithLabelValues(reason)
	}

	return m
}
