package api

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"trunkline/internal/fault"
	"trunkline/internal/tracing"
)

// Every request passes these from the outside in: request id, span (with
// tracing on), access log, metrics, security headers, answer, slashes. The
// answer's turns errors and panics into answers, so that those before it see
// what the client sees.

const headerRequestID = "X-Request-ID"

func requestID(c echo.Context) string { return c.Response().Header().Get(headerRequestID) }

// withRequestID takes the client's id when it is harmless, else makes one.
func (a *API) withRequestID(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		id := c.Request().Header.Get(headerRequestID)
		if !safeID(id) {
			id = uuid.NewString()
		}
		c.Response().Header().Set(headerRequestID, id)
		return next(c)
	}
}

func safeID(id string) bool {
	if len(id) < 1 || len(id) > 128 {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '-', c == '_', c == '.', c == ':', c == '/', c == '+', c == '=':
		default:
			return false
		}
	}
	return true
}

// withSpan makes the request a part of its client's trace, or of a new one. What
// comes before it sees the request without.
func (a *API) withSpan(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		method := methodOf(c)
		if method == otherMethod {
			method = ""
		}
		r, span := a.deps.Tracer.Serve(c.Request(), method, c.Path())
		c.SetRequest(r)
		defer func() {
			if account := accountOf(c); account != "" {
				span.Set(tracing.Account(account))
			}
			span.Answered(c.Response().Status)
			span.End(nil)
		}()
		return next(c)
	}
}

// withSecurityHeaders tells browsers to do nothing with an answer but show it.
func withSecurityHeaders(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		header := c.Response().Header()
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cache-Control", "no-store")
		return next(c)
	}
}

// withAnswer turns what a handler returns, or panics with, into an answer.
func (a *API) withAnswer(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		err := a.recovered(c, next)
		if err == nil {
			return nil
		}
		if c.Response().Committed {
			// Too late to say so: cutting the answer short is the only honest
			// end, and net/http does it on this panic without a word.
			a.log.ErrorContext(c.Request().Context(), "answer broken off", "request_id", requestID(c), "route", routeOf(c), "error", err)
			panic(http.ErrAbortHandler)
		}
		a.writeError(c, err)
		return nil
	}
}

func (a *API) recovered(c echo.Context, next echo.HandlerFunc) (err error) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			panic(p)
		default:
			a.log.ErrorContext(c.Request().Context(), "panic", "request_id", requestID(c), "route", routeOf(c), "panic", p, "stack", string(debug.Stack()))
			err = fault.Internal(errors.New("panic"), "Internal error")
		}
	}()
	return next(c)
}

// withoutSlashes keeps a parameter from holding slashes: echo lets a path's last
// one swallow them.
func withoutSlashes(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		pattern := c.Path()
		if pattern != "" && strings.Count(pattern, "/") != strings.Count(c.Request().URL.EscapedPath(), "/") {
			return echo.ErrNotFound
		}
		return next(c)
	}
}

func (a *API) withTimeout(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		whole := c.Request()
		ctx, cancel := context.WithTimeout(whole.Context(), a.config.RequestTimeout)
		defer cancel()
		c.SetRequest(whole.WithContext(ctx))
		err := next(c)
		c.SetRequest(whole) // what answers err is not under the timeout any more
		return err
	}
}

// clientAddress is the connection's address, or the one that trusted proxies
// say they speak for.
func clientAddress(proxies []netip.Prefix) echo.IPExtractor {
	if len(proxies) == 0 {
		return echo.ExtractIPDirect()
	}
	trust := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, p := range proxies {
		p = p.Masked()
		trust = append(trust, echo.TrustIPRange(&net.IPNet{
			IP:   p.Addr().AsSlice(),
			Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen()),
		}))
	}
	return echo.ExtractIPFromXFFHeader(trust...)
}

// routeOf is the pattern of the route, bounded for use in labels and free of
// what a path's parameters say.
func routeOf(c echo.Context) string {
	if path := c.Path(); path != "" {
		return path
	}
	return unmatched
}

const unmatched = "unmatched"

// withAccessLog writes one line for each request, at debug level where nothing
// went wrong: a busy ingest would drown the rest. Never its query, its headers
// or the parameters in its path, which can be tokens or phone numbers.
func (a *API) withAccessLog(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		began := time.Now()
		defer func() {
			level := slog.LevelInfo
			if c.Response().Status < http.StatusBadRequest {
				level = slog.LevelDebug
			}
			a.log.Log(c.Request().Context(), level, "request",
				"request_id", requestID(c), "method", methodOf(c), "route", routeOf(c),
				"status", c.Response().Status, "duration", time.Since(began), "bytes", c.Response().Size,
				"account", accountOf(c))
		}()
		return next(c)
	}
}
