package sip

import (
	"strconv"

	sipmsg "github.com/emiago/sipgo/sip"
	"github.com/prometheus/client_golang/prometheus"
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
	bindings  *prometheus.CounterVec // by event
	requests  *prometheus.CounterVec // by method and status class
	floods    *prometheus.CounterVec // by reason
	setups    *prometheus.CounterVec // by cause
	calls     prometheus.Gauge
	malformed prometheus.Counter
	strays    prometheus.Counter
	// handshakes counts failed TLS handshakes of incoming connections.
	handshakes prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		bindings: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_sip_registrations_total",
			Help: "Registrations of phones, by event.",
		}, []string{"event"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_sip_requests_total",
			Help: "Requests answered, by method and class of the final answer.",
		}, []string{"method", "class"}),
		floods: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_sip_flood_dropped_total",
			Help: "Messages, calls and connections dropped or refused by flood protection, by limit.",
		}, []string{"limit"}),
		setups: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_sip_setups_total",
			Help: "Calls placed and received, by cause; NORMAL_CLEARING is an answered call.",
		}, []string{"cause"}),
		calls: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_sip_legs",
			Help: "Call legs being set up or connected.",
		}),
		malformed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_sip_malformed_total",
			Help: "Messages that are not SIP or lack a mandatory header.",
		}),
		strays: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_sip_stray_answers_total",
			Help: "Responses without a matching request.",
		}),
		handshakes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_sip_tls_handshake_failures_total",
			Help: "TLS handshakes of incoming connections that failed.",
		}),
	}
	for _, event := range []string{"registered", "refreshed", string(UnregisteredByDevice), string(UnregisteredExpired), string(UnregisteredReplaced)} {
		m.bindings.WithLabelValues(event)
	}
	for _, limit := range []string{floodAddress, floodOverall, floodFailures, floodCalls, floodConnections, floodSources, floodUnproven} {
		m.floods.WithLabelValues(limit)
	}
	for cause := range q850 {
		m.setups.WithLabelValues(string(cause))
	}
	for _, c := range []prometheus.Collector{m.bindings, m.requests, m.floods, m.setups, m.calls, m.malformed, m.strays, m.handshakes} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) flood(limit string) { m.floods.WithLabelValues(limit).Inc() }

func (m *metrics) setup(cause Cause) { m.setups.WithLabelValues(string(cause)).Inc() }

// answered counts a final response. Unknown methods share one label.
func (m *metrics) answered(r *sipmsg.Response) {
	if r.IsProvisional() {
		return
	}
	method := "other"
	if c := r.CSeq(); c != nil {
		switch c.MethodName {
		case sipmsg.INVITE, sipmsg.BYE, sipmsg.CANCEL, sipmsg.REGISTER, sipmsg.OPTIONS, sipmsg.UPDATE,
			sipmsg.NOTIFY, sipmsg.REFER:
			method = string(c.MethodName)
		}
	}
	m.requests.WithLabelValues(method, strconv.Itoa(r.StatusCode/100)+"xx").Inc()
}
