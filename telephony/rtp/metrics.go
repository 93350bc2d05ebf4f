package rtp

import "github.com/prometheus/client_golang/prometheus"

// Reasons for dropping a packet.
const (
	dropStranger   = iota // not from the leg's peer
	dropMalformed         // not an RTP packet
	dropControl           // RTCP on the media port
	dropUnwanted          // the leg has no receiver yet
	dropPayload           // a payload type that was not negotiated
	dropHeld              // the peer is on hold
	dropUnsent            // sending failed
	dropUnreadable        // receiving failed
	dropForged            // SRTP that is not authentic, or replayed
	dropReasons
)

type metrics struct {
	inUse, available prometheus.Gauge
	received, sent   prometheus.Counter
	dropped          [dropReasons]prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		inUse: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_rtp_ports_in_use",
			Help: "Media ports in use.",
		}),
		available: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_rtp_ports",
			Help: "Media ports in the configured range.",
		}),
		received: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_rtp_packets_received_total",
			Help: "Media packets received and accepted.",
		}),
		sent: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_rtp_packets_sent_total",
			Help: "Media packets sent.",
		}),
	}
	dropped := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trunkline_rtp_packets_dropped_total",
		Help: "Media packets dropped, by reason.",
	}, []string{"reason"})
	for i, reason := range [dropReasons]string{
		dropStranger: "stranger", dropMalformed: "malformed", dropControl: "rtcp", dropUnwanted: "unwanted",
		dropPayload: "payload_type", dropHeld: "held", dropUnsent: "unsent", dropUnreadable: "unreadable", dropForged: "forged",
	} {
		m.dropped[i] = dropped.WithLabelValues(reason)
	}
	for _, c := range []prometheus.Collector{m.inUse, m.available, m.received, m.sent, dropped} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}
