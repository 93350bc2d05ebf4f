package oidc

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Kinds of requests to the provider, as metric labels.
const (
	requestDiscovery = "discovery" // its metadata
	requestKeys      = "keys"      // the keys of its tokens
	requestToken     = "token"     // tokens for a code
)

func newMetrics(reg prometheus.Registerer) *prometheus.CounterVec {
	requests := promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
		Name: "trunkline_identity_oidc_requests_total",
		Help: "Requests to the OpenID Connect provider, by kind and result.",
	}, []string{"request", "result"})
	for _, request := range []string{requestDiscovery, requestKeys, requestToken} {
		for _, result := range []string{"ok", "error"} {
			requests.WithLabelValues(request, result)
		}
	}
	return requests
}
