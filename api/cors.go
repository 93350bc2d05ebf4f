package api

import (
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"

	"trunkline/internal/fault"
)

// origins decides which pages a browser may let read the responses (CORS). There are no
// cookies to protect but those of the OpenID Connect login, which other sites do not get: a
// client sends its token itself.
type origins struct {
	log            *slog.Logger
	allowedOrigins map[string]bool // in lower case
	allowsAll      bool            // the setting has anyOrigin

	mu            sync.Mutex
	warnedOrigins map[string]bool // refused origins that the log has named
}

// maxWarnedOrigins bounds the refused origins that the log names: their texts are the clients'.
const maxWarnedOrigins = 100

func newOrigins(allowed []string, log *slog.Logger) *origins {
	o := &origins{log: log, allowedOrigins: map[string]bool{}, warnedOrigins: map[string]bool{}}
	for _, origin := range allowed {
		o.allowsAll = o.allowsAll || origin == anyOrigin
		o.allowedOrigins[strings.ToLower(origin)] = true
	}
	return o
}

// Headers of CORS: what a page may read beside the body, and for how long a browser may
// keep the answer to a preflight, in seconds.
const (
	exposedHeaders  = "ETag, Retry-After, X-Request-ID, Content-Range, Link"
	preflightMaxAge = "3600"
)

// withOrigin answers preflights, before any authentication, adds the headers with which
// pages of allowed origins may read responses, and refuses a WebSocket of others, for which
// browsers ask no one.
func (o *origins) withOrigin(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r, header := c.Request(), c.Response().Header()
		header.Add(echo.HeaderVary, echo.HeaderOrigin)
		origin := r.Header.Get(echo.HeaderOrigin)
		if origin == "" || c.Path() == mediaPath { // no browser, a page of the server's own, or a switch
			return next(c)
		}

		preflight := r.Method == http.MethodOptions && r.Header.Get(echo.HeaderAccessControlRequestMethod) != ""
		if !o.admits(r, origin) {
			o.warn(origin)
			if preflight || strings.EqualFold(r.Header.Get(echo.HeaderUpgrade), "websocket") {
				return fault.Forbidden("this origin is not allowed")
			}
			return next(c) // without a header that lets the page read it
		}

		if o.allowsAll {
			origin = anyOrigin
		}

		header.Set(echo.HeaderAccessControlAllowOrigin, origin)
		if !preflight {
			header.Set(echo.HeaderAccessControlExposeHeaders, exposedHeaders)
			return next(c)
		}

		header.Add(echo.HeaderVary, echo.HeaderAccessControlRequestMethod)
		header.Add(echo.HeaderVary, echo.HeaderAccessControlRequestHeaders)
		header.Set(echo.HeaderAccessControlAllowMethods, "GET, HEAD, POST, PUT, DELETE")
		asked := r.Header.Get(echo.HeaderAccessControlRequestHeaders)
		if asked != "" {
			header.Set(echo.HeaderAccessControlAllowHeaders, asked)
		}

		header.Set(echo.HeaderAccessControlMaxAge, preflightMaxAge)
		return c.NoContent(http.StatusNoContent)
	}
}

// admits reports whether the setting has the origin, or it is the request's own: its host
// and port, and https where the client uses TLS, because other pages can be changed on the
// way. A proxy that ends TLS says so in X-Forwarded-Proto, which no browser sets; behind one
// that does not, either scheme is the request's own.
func (o *origins) admits(r *http.Request, origin string) bool {
	if o.allowsAll || o.allowedOrigins[strings.ToLower(origin)] {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || !strings.EqualFold(u.Host, r.Host) {
		return false
	}
	secure := r.TLS != nil || strings.EqualFold(r.Header.Get(echo.HeaderXForwardedProto), "https")
	return u.Scheme == "https" || u.Scheme == "http" && !secure
}

// warn logs a refused origin, once.
func (o *origins) warn(origin string) {
	if len(origin) > 256 {
		origin = origin[:256]
	}

	o.mu.Lock()
	known := o.warnedOrigins[origin] || len(o.warnedOrigins) >= maxWarnedOrigins
	if !known {
		o.warnedOrigins[origin] = true
	}
	o.mu.Unlock()

	if !known {
		o.log.Warn("origin refused", "origin", origin, "setting", "allowed_origins")
	}
}
