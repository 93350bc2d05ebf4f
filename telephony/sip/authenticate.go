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

// challengeForm is a pair of header names and a status: WWW-Authenticate or Proxy-Authenticate.
type challengeForm struct {
	status status
	ask    string
	reply  string
}

var (
	userDigest  = challengeForm{status{401, "Unauthorized"}, "WWW-Authenticate", "Authorization"}
	proxyDigest = challengeForm{status{407, "Proxy Authentication Required"}, "Proxy-Authenticate", "Proxy-Authorization"}
)

// proof has the values that a request's credentials must match.
type proof struct {
	source           netip.AddrPort
	domain, username string // as given in the request
	form             challengeForm
}

// authenticate returns the user whose digest credentials (RFC 7616, qop=auth) the request has. If it
// returns false, it has answered the request.
//
// Credentials are compared only if their nonce was issued for their source address, so that each guess
// is counted, and only for an address that receives our responses.
func (s *Server) authenticate(ctx context.Context, r *sipmsg.Request, tx *sipmsg.ServerTx, asked proof) (User, bool) {
	user, err := s.users.SIPUser(ctx, asked.domain, asked.username)
	if err != nil && fault.KindOf(err) != fault.KindNotFound {
		s.unavailable(r, tx, "phone lookup failed", err)
		return User{}, false
	}
	if err != nil {
		user = User{Domain: cmp.Or(user.Domain, asked.domain), Extension: asked.username}
	}
	given, ok := credentials(r, asked.form.reply, user.Domain)
	if !ok {
		s.challenge(r, tx, asked, user.Domain, false)
		return User{}, false
	}
	from, now := asked.source.Addr(), time.Now()
	if !s.nonces.fresh(given.Nonce, from, now) {
		s.challenge(r, tx, asked, user.Domain, true)
		return User{}, false
	}
	s.prove(r) // it has our nonce
	err = s.users.Authenticate(ctx, user, from, func(ha1 HA1) bool {
		return given.Username == user.Extension && proves(given, r.Method, ha1)
	})
	switch fault.KindOf(err) {
	case "":
	case fault.KindUnauthenticated:
		s.refuseRequest(tx, r, status{403, "Forbidden"})
		return User{}, false
	case fault.KindLimited:
		s.metrics.flood(floodFailures)
		s.refuseRequest(tx, r, status{403, "Forbidden"})
		return User{}, false
	default:
		s.unavailable(r, tx, "authenticating a phone failed", err)
		return User{}, false
	}
	if !s.nonces.use(given.Nonce, given.Nc, now) {
		s.challenge(r, tx, asked, user.Domain, true)
		return User{}, false
	}
	return user, true
}

func (s *Server) unavailable(r *sipmsg.Request, tx *sipmsg.ServerTx, what string, err error) {
	s.log.Warn(what, "error", err)
	s.refuseRequest(tx, r, status{503, "Service Unavailable"}, sipmsg.NewHeader("Retry-After", "5"))
}

// challenge answers with a challenge for each algorithm. stale makes the phone retry with the same
// password, because its nonce is not valid. The values are short, because the response must be shorter
// than the request (guard.maySend): MD5 is the algorithm of a challenge that names none.
func (s *Server) challenge(r *sipmsg.Request, tx *sipmsg.ServerTx, asked proof, realm string, stale bool) {
	nonce := s.nonces.make(asked.source.Addr(), time.Now())
	asks := make([]sipmsg.Header, 0, len(s.config.DigestAlgorithms))
	for _, algorithm := range s.config.DigestAlgorithms {
		// A header for each (RFC 8760); some phones fail on an algorithm that they do not know.
		algorithm = strings.ToUpper(algorithm)
		value := fmt.Sprintf(`Digest realm="%s",nonce="%s",qop="auth"`, printable(realm), nonce)
		if algorithm != DigestMD5 {
			value += ",algorithm=" + algorithm
		}
		if stale {
			value += ",stale=true"
		}
		asks = append(asks, sipmsg.NewHeader(asked.form.ask, value))
	}
	s.refuseRequest(tx, r, asked.form.status, asks...)
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

// proves reports whether a digest is valid for a method and HA1. It uses the URI in the credentials,
// because a proxy may have changed the request's URI.
func proves(c *digest.Credentials, method sipmsg.RequestMethod, ha1 HA1) bool {
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
