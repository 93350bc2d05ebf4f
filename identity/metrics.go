package identity

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Results of logins and of checks, as metric labels.
const (
	resultOK       = "ok"
	resultWrong    = "wrong"    // no such user, domain or password; not a token or key of ours
	resultExpired  = "expired"  // a token
	resultRevoked  = "revoked"  // a token
	resultAudience = "audience" // a valid token of another audience
	resultLimited  = "limited"  // too many failed logins
	resultInvalid  = "invalid"  // a login with bad fields
	resultError    = "error"    // we could not tell
)

type metrics struct {
	logins       *prometheus.CounterVec
	tokenChecks  *prometheus.CounterVec
	keyChecks    *prometheus.CounterVec
	reuses       prometheus.Counter
	reloadErrors prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	factory := promauto.With(reg)
	m := &metrics{
		logins: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_identity_logins_total",
			Help: "Logins, by what they are for and how they ended.",
		}, []string{"audience", "result"}),
		tokenChecks: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_identity_token_checks_total",
			Help: "Tokens checked, by result.",
		}, []string{"result"}),
		keyChecks: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_identity_key_checks_total",
			Help: "API keys checked, by result.",
		}, []string{"result"}),
		reuses: factory.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_identity_refresh_reuses_total",
			Help: "Used refresh tokens shown again, each of which revoked its family.",
		}),
		reloadErrors: factory.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_identity_reload_errors_total",
			Help: "Failed attempts to follow changes in the database.",
		}),
	}
	for _, audience := range []Audience{AudienceAPI, AudienceEvents} {
		for _, result := range []string{resultOK, resultWrong, resultLimited, resultInvalid, resultError} {
			m.logins.WithLabelValues(string(audience), result)
		}
	}
	for _, result := range []string{resultOK, resultWrong, resultExpired, resultRevoked, resultAudience} {
		m.tokenChecks.WithLabelValues(result)
	}
	for _, result := range []string{resultOK, resultWrong} {
		m.keyChecks.WithLabelValues(result)
	}
	return m
}

// newFallbacks returns the limiter's: it is made before the Service it serves.
func newFallbacks(reg prometheus.Registerer) prometheus.Counter {
	return promauto.With(reg).NewCounter(prometheus.CounterOpts{
		Name: "trunkline_identity_limiter_fallbacks_total",
		Help: "Questions about login limits answered from this process alone, because Redis was away.",
	})
}
