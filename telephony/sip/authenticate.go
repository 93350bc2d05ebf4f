package sip

import (
	"context"
	"crypto/md5"
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

// nobodysHA1 is compared for a user who does not exist, so that the check takes the same time.
var nobodysHA1 = strings.Repeat("0", 2*md5.Size)

// proof has the values that a request's credentials must match.
type proof struct {
	source           netip.AddrPort
	domain, username string // as given in the request
	form             challengeForm
}

// authenticate returns the user whose digest credentials (RFC 2617, MD5 with qop=auth) the request
// has. If it returns false, it has answered the request.
func (s *Server) authenticate(ctx context.Context, r *sipmsg.Request, tx *sipmsg.ServerTx, asked proof) (User, bool) {
	user, err := s.directory.SIPUser(ctx, asked.domain, asked.username)
	known := err == nil
	if !known && fault.KindOf(err) != fault.KindNotFound {
		s.log.Warn("phone lookup failed", "error", err)
		s.refuseRequest(tx, r, status{503, "Service Unavailable"}, sipmsg.NewHeader("Retry-After", "5"))
		return User{}, false
	}
	realm := or(user.Domain, asked.domain)
	given, ok := credentials(r, asked.form.reply, realm)
	if !ok {
		s.challenge(r, tx, asked.form, realm, false)
		return User{}, false
	}
	ha1, extension := user.HA1, user.Extension
	if !known {
		ha1, extension = nobodysHA1, asked.username
	}
	right := proves(given, r.Method, ha1) && given.Username == extension && known
	now := time.Now()
	switch {
	case !right && s.nonces.fresh(given.Nonce, now):
		s.guard.failed(asked.source.Addr())
		s.refuseRequest(tx, r, status{403, "Forbidden"})
		return User{}, false
	case !right || !s.nonces.fresh(given.Nonce, now) || !s.nonces.use(given.Nonce, given.Nc, now):
		s.challenge(r, tx, asked.form, realm, right)
		return User{}, false
	}
	s.guard.proved(asked.source.Addr())
	return user, true
}

// challenge answers with a challenge. stale means that the credentials were right but their nonce has
// expired.
func (s *Server) challenge(r *sipmsg.Request, tx *sipmsg.ServerTx, form challengeForm, realm string, stale bool) {
	value := fmt.Sprintf(`Digest realm="%s", nonce="%s", algorithm=MD5, qop="auth"`, printable(realm), s.nonces.make(time.Now()))
	if stale {
		value += ", stale=true"
	}
	s.refuseRequest(tx, r, form.status, sipmsg.NewHeader(form.ask, value))
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

// proves reports whether a digest is right for a method and HA1. It uses the URI in the credentials,
// because a proxy may have changed the request's.
func proves(c *digest.Credentials, method sipmsg.RequestMethod, ha1 string) bool {
	if c.QOP != "auth" || c.Algorithm != "" && !strings.EqualFold(c.Algorithm, "MD5") {
		return false
	}
	ha2 := md5Hex(string(method), c.URI)
	wanted := md5Hex(strings.ToLower(ha1), c.Nonce, fmt.Sprintf("%08x", c.Nc), c.Cnonce, c.QOP, ha2)
	return subtle.ConstantTimeCompare([]byte(wanted), []byte(strings.ToLower(c.Response))) == 1
}

func md5Hex(parts ...string) string {
	sum := md5.Sum([]byte(strings.Join(parts, ":")))
	return hex.EncodeToString(sum[:])
}
