package identity

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/fault"
	"trunkline/internal/metric"
)

// Results of logins and of checks, as metric labels.
const (
	resultOK       = "ok"
	resultWrong    = "wrong"    // wrong user, domain or password; invalid token or key
	resultExpired  = "expired"  // an expired token
	resultRevoked  = "revoked"  // a revoked token
	resultAudience = "audience" // a valid token of another audience
	resultLimited  = "limited"  // too many failed logins
	resultInvalid  = "invalid"  // a login with missing fields
	resultError    = "error"    // the check failed, such as without a database
	resultPortal   = "portal"   // a phone authenticated with its user's portal password
)

type metrics struct {
	logins       *prometheus.CounterVec
	phones       *prometheus.CounterVec
	tokenChecks  *prometheus.CounterVec
	keyChecks    *prometheus.CounterVec
	reuses       prometheus.Counter
	reloadErrors prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, directoryAge func() time.Duration) *metrics {
	f := metric.With(reg)
	m := &metrics{
		logins: f.CounterVec("trunkline_identity_logins_total", "Logins, by audience and result.", "audience",
			"result"),
		phones: f.CounterVec("trunkline_identity_phone_authentications_total",
			"Digest authentications of phones, by result; portal: with the user's portal password.", "result"),
		tokenChecks: f.CounterVec("trunkline_identity_token_checks_total", "Tokens checked, by result.", "result"),
		keyChecks:   f.CounterVec("trunkline_identity_key_checks_total", "API keys checked, by result.", "result"),
		reuses: f.Counter("trunkline_identity_refresh_reuses_total",
			"Reuses of a refresh token; each revoked all tokens of its session."),
		reloadErrors: f.Counter("trunkline_identity_reload_errors_total",
			"Failed attempts to follow changes in the database."),
	}

	for _, audience := range []Audience{AudienceAPI, AudienceEvents} {
		for _, result := range []string{resultOK, resultWrong, resultLimited, resultInvalid, resultError} {
			m.logins.WithLabelValues(string(audience), result)
		}
	}

	metric.Init(m.phones, resultOK, resultPortal, resultWrong, resultLimited, resultError)
	metric.Init(m.tokenChecks, resultOK, resultWrong, resultExpired, resultRevoked, resultAudience, resultError)
	metric.Init(m.keyChecks, resultOK, resultWrong, resultError)
	f.GaugeFunc("trunkline_identity_directory_age_seconds",
		"Seconds since accounts, keys and revocations in memory were known to be current; above 10, tokens and keys are refused.",
		func() float64 { return directoryAge().Seconds() })

	return m
}

// countLogin counts a login that ended with err.
func (m *metrics) countLogin(audience Audience, err error) {
	result := resultError
	switch fault.KindOf(err) {
	case "":
		result = resultOK
	case fault.KindUnauthenticated:
		result = resultWrong
	case fault.KindLimited:
		result = resultLimited
	case fault.KindInvalid:
		result = resultInvalid
	}

	m.logins.WithLabelValues(string(audience), result).Inc()
}

// newFallbacks registers the limiter's counter, apart from newMetrics because the
// limiter is created before the parts of the Service.
func newFallbacks(reg prometheus.Registerer) prometheus.Counter {
	return metric.With(reg).Counter("trunkline_identity_limiter_fallbacks_total",
		"Checks of login limits made with this process's counts only, because Redis was unavailable.")
}
