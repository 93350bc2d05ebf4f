package sip

import (
	"cmp"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
	"time"

	sipmsg "github.com/emiago/sipgo/sip"
	"github.com/icholy/digest"

	"trunkline/internal/fault"
)

// challengeForm is how a challenge is sent and answered: by a registrar, or by a proxy (RFC 3261, section 22).
// This server registers phones as a registrar, and challenges their calls as a proxy.
type challengeForm struct {
	status            status
	challengeHeader   string
	credentialsHeader string
}

var (
	wwwAuthenticate = challengeForm{status: status{401, "Unauthorized"},
		challengeHeader: "WWW-Authenticate", credentialsHeader: "Authorization"}
	proxyAuthenticate = challengeForm{status: status{407, "Proxy Authentication Required"},
		challengeHeader: "Proxy-Authenticate", credentialsHeader: "Proxy-Authorization"}
)

// expectedCredentials has the values that a request's credentials must match.
type expectedCredentials struct {
	source           netip.AddrPort
	domain, username string        // as given in the request
	challenge        challengeForm // that of the challenge which they answer
}

// authenticateRequest returns the user whose digest credentials (RFC 7616, qop=auth) the request has. If it
// returns false, it has answered the request.
//
// Credentials are compared only if their nonce was issued for their source address, so that each guess
// is counted, and only for an address that receives our responses.
func (g *registrar) authenticateRequest(ctx context.Context, r *sipmsg.Request, tx *sipmsg.ServerTx,
	expected expectedCredentials) (User, bool) {
	user, err := g.users.SIPUser(ctx, expected.domain, expected.username)
	if err != nil && fault.KindOf(err) != fault.KindNotFound {
		g.rejectUnavailable(r, tx, "phone lookup failed", err)
		return User{}, false
	}
	if err != nil {
		// Challenged like others: the answer must not tell which users exist.
		user = User{Domain: cmp.Or(user.Domain, expected.domain), Extension: expected.username}
	}

	given, ok := credentials(r, expected.challenge.credentialsHeader, user.Domain)
	if !ok {
		g.sendChallenge(r, tx, expected, user.Domain, false)
		return User{}, false
	}

	from, now := expected.source.Addr(), time.Now()
	if !g.nonces.valid(given.Nonce, from, now) {
		g.sendChallenge(r, tx, expected, user.Domain, true)
		return User{}, false
	}

	g.transports.markProven(r) // it has our nonce

	err = g.users.Authenticate(ctx, user, from, func(ha1 HA1) bool {
		return given.Username == user.Extension && digestMatches(given, r.Method, ha1)
	})
	switch fault.KindOf(err) {
	case "":
	case fault.KindUnauthenticated:
		g.transports.replyAndTerminate(tx, r, status{403, "Forbidden"})
		return User{}, false
	case fault.KindLimited:
		g.metrics.countFlood(floodFailures)
		g.transports.replyAndTerminate(tx, r, status{403, "Forbidden"})
		return User{}, false
	default:
		g.rejectUnavailable(r, tx, "authenticating a phone failed", err)
		return User{}, false
	}

	// After the check: only nonces with a valid answer take memory.
	if !g.nonces.recordUse(given.Nonce, given.Nc, now) {
		g.sendChallenge(r, tx, expected, user.Domain, true)
		return User{}, false
	}

	return user, true
}

// admitCaller checks the caller of an INVITE and returns its user. If it returns false, it has answered.
func (g *registrar) admitCaller(ctx context.Context, r *sipmsg.Request, tx *sipmsg.ServerTx,
	source netip.AddrPort) (User, bool) {
	if g.transports.limiter.isTrusted(source.Addr()) {
		return User{}, true
	}

	from := r.From().Address
	caller, ok := g.authenticateRequest(ctx, r, tx,
		expectedCredentials{source: source, domain: from.Host, username: from.User, challenge: proxyAuthenticate})
	if !ok {
		return User{}, false
	}

	registered, err := g.registrations.Exist(ctx, caller.AccountID, caller.Extension)
	if err != nil {
		g.log.Warn("admitting a call failed", "error", err)
		g.transports.replyAndTerminate(tx, r, status{503, "Service Unavailable"}, sipmsg.NewHeader("Retry-After", "5"))
		return User{}, false
	}

	if !registered {
		g.transports.replyAndTerminate(tx, r, status{403, "Forbidden"})
	}

	return caller, registered
}

// rejectUnavailable answers a request that cannot be handled now with 503, and logs why.
func (g *registrar) rejectUnavailable(r *sipmsg.Request, tx *sipmsg.ServerTx, message string, err error) {
	g.log.Warn(message, "error", err)
	g.transports.replyAndTerminate(tx, r, status{503, "Service Unavailable"}, sipmsg.NewHeader("Retry-After", "5"))
}

// sendChallenge answers with a challenge for each algorithm. stale makes the phone retry with the same
// password, because its nonce is not valid. The values are short, because the response must be shorter
// than the request (sourceLimiter.maySend): MD5 is the algorithm of a challenge that names none.
func (g *registrar) sendChallenge(r *sipmsg.Request, tx *sipmsg.ServerTx, expected expectedCredentials, realm string,
	stale bool) {
	nonce := g.nonces.issue(expected.source.Addr(), time.Now())
	challenges := make([]sipmsg.Header, 0, len(g.config.DigestAlgorithms))
	for _, algorithm := range g.config.DigestAlgorithms {
		// A header for each (RFC 8760); some phones fail on an algorithm that they do not know.
		algorithm = strings.ToUpper(algorithm)
		value := fmt.Sprintf(`Digest realm="%s",nonce="%s",qop="auth"`, sanitizeHeader(realm), nonce)
		if algorithm != DigestMD5 {
			value += ",algorithm=" + algorithm
		}
		if stale {
			value += ",stale=true"
		}

		challenges = append(challenges, sipmsg.NewHeader(expected.challenge.challengeHeader, value))
	}

	g.transports.replyAndTerminate(tx, r, expected.challenge.status, challenges...)
}

// credentials returns the request's credentials for a realm.
func credentials(r *sipmsg.Request, header, realm string) (*digest.Credentials, bool) {
	for _, h := range r.GetHeaders(header) {
		c, err := digest.ParseCredentials(h.Value())
		if err == nil && c.Realm == realm {
			return c, true
		}
	}
	return nil, false
}

// Algorithms of digest authentication (RFC 7616, section 6.1).
const (
	DigestMD5    = "MD5"
	DigestSHA256 = "SHA-256"
)

// digestMatches reports whether a digest is valid for a method and HA1. It uses the URI in the credentials,
// because a proxy may have changed the request's URI.
func digestMatches(c *digest.Credentials, method sipmsg.RequestMethod, ha1 HA1) bool {
	hash, secret := md5Hex, ha1.MD5
	switch {
	case strings.EqualFold(c.Algorithm, DigestSHA256):
		hash, secret = sha256Hex, ha1.SHA256
	case c.Algorithm != "" && !strings.EqualFold(c.Algorithm, DigestMD5):
		return false
	}

	if c.QOP != "auth" || secret == "" {
		return false
	}

	ha2 := hash(string(method), c.URI)
	wanted := hash(strings.ToLower(secret), c.Nonce, fmt.Sprintf("%08x", c.Nc), c.Cnonce, c.QOP, ha2)
	return subtle.ConstantTimeCompare([]byte(wanted), []byte(strings.ToLower(c.Response))) == 1
}

func md5Hex(parts ...string) string {
	sum := md5.Sum([]byte(strings.Join(parts, ":")))
	return hex.EncodeToString(sum[:])
}

func sha256Hex(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, ":")))
	return hex.EncodeToString(sum[:])
}
