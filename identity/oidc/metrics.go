package oidc

import (
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/metric"
)

// Kinds of requests to the provider, as metric labels.
const (
	requestDiscovery = "discovery" // for its metadata
	requestJWKS      = "keys"      // for its JSON Web Key Set
	requestToken     = "token"     // for the tokens of a code
)

func newMetrics(reg prometheus.Registerer) *prometheus.CounterVec {
	requests := metric.With(reg).CounterVec("trunkline_identity_oidc_requests_total",
		"Requests to the OpenID Connect provider, by kind and result.", "request", "result")
	for _, request := range []string{requestDiscovery, requestJWKS, requestToken} {
		for _, result := range []string{"ok", "error"} {
			requests.WithLabelValues(request, result)
		}
	}
	return requests
}
