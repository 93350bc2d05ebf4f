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
	resultError    = "error"    // the check could not be made
	resultPortal   = "portal"   // a phone with its user's portal password
)

type metrics struct {
	logins       *prometheus.CounterVec
	phones       *prometheus.CounterVec
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
			Help: "Logins, by audience and result.",
		}, []string{"audience", "result"}),
		phones: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_identity_phone_authentications_total",
			Help: "Digest authentications of phones, by result; portal: with the user's portal password.",
		}, []string{"result"}),
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
			Help: "Reuses of a refresh token; each revoked all tokens of its session.",
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
	for _, result := range []string{resultOK, resultPortal, resultWrong, resultLimited, resultError} {
		m.phones.WithLabelValues(result)
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
		Help: "Checks of login limits made with this process's counts only, because Redis was unavailable.",
	})
}
