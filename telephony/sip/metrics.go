package sip

import (
	"strconv"

	sipmsg "github.com/emiago/sipgo/sip"
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/metric"
)

// Reasons for dropping or refusing messages above a limit.
const (
	floodAddress     = "address"     // messages of one address
	floodOverall     = "overall"     // requests of all addresses
	floodFailures    = "failures"    // authentication failures of one user or address
	floodCalls       = "calls"       // concurrent calls
	floodConnections = "connections" // concurrent TCP and TLS connections
	floodSources     = "sources"     // new UDP addresses per second
	floodUnproven    = "unproven"    // bytes sent to an address that may be forged
)

type metrics struct {
	bindings         *prometheus.CounterVec // registrations, by event
	requests         *prometheus.CounterVec // answered ones, by method and status class
	floodDrops       *prometheus.CounterVec // by reason
	setups           *prometheus.CounterVec // calls placed and received, by cause
	calls            prometheus.Gauge       // legs, including those being set up
	malformed        prometheus.Counter
	strayResponses   prometheus.Counter
	failedHandshakes prometheus.Counter // TLS handshakes of incoming connections
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := metric.With(reg)
	m := &metrics{
		bindings: f.CounterVec("trunkline_sip_registrations_total", "Registrations of phones, by event.",
			"event"),
		requests: f.CounterVec("trunkline_sip_requests_total",
			"Requests answered, by method and class of the final answer; a value of a label appears with its first request.",
			"method", "class"),
		floodDrops: f.CounterVec("trunkline_sip_flood_dropped_total",
			"Messages, calls and connections dropped or refused by flood protection, by limit.", "limit"),
		setups: f.CounterVec("trunkline_sip_setups_total",
			"Calls placed and received, by cause; NORMAL_CLEARING is an answered call.", "cause"),
		calls: f.Gauge("trunkline_sip_legs", "Call legs being set up or connected."),
		malformed: f.Counter("trunkline_sip_malformed_total",
			"Messages that are not SIP or lack a mandatory header."),
		strayResponses: f.Counter("trunkline_sip_stray_answers_total", "Responses without a matching request."),
		failedHandshakes: f.Counter("trunkline_sip_tls_handshake_failures_total",
			"TLS handshakes of incoming connections that failed."),
	}
	metric.Init(m.bindings, "registered", "refreshed")
	metric.Init(m.bindings, UnregisteredByDevice, UnregisteredExpired, UnregisteredReplaced)
	metric.Init(m.floodDrops, floodAddress, floodOverall, floodFailures, floodCalls, floodConnections, floodSources,
		floodUnproven)

	for cause := range q850Numbers {
		m.setups.WithLabelValues(string(cause))
	}

	return m
}

func (m *metrics) countFlood(limit string) { m.floodDrops.WithLabelValues(limit).Inc() }

func (m *metrics) countSetup(cause Cause) { m.setups.WithLabelValues(string(cause)).Inc() }

// countResponse counts a final response. Unknown methods share one label.
func (m *metrics) countResponse(r *sipmsg.Response) {
	if r.IsProvisional() {
		return
	}

	method := "other"
	c := r.CSeq()
	if c != nil {
		switch c.MethodName {
		case sipmsg.INVITE, sipmsg.BYE, sipmsg.CANCEL, sipmsg.REGISTER, sipmsg.OPTIONS, sipmsg.UPDATE,
			sipmsg.NOTIFY, sipmsg.REFER:
			method = string(c.MethodName)
		}
	}

	m.requests.WithLabelValues(method, strconv.Itoa(r.StatusCode/100)+"xx").Inc()
}
