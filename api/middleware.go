package api

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"trunkline/internal/fault"
	"trunkline/internal/tracing"
)

// Middleware, outermost first: request id, span (if tracing is on), access log, metrics,
// security headers, error response, origin, slashes, parameters, body. The error response is written
// inside of access log and metrics, so that these record the status that the client
// receives.

const headerRequestID = "X-Request-ID"

func requestID(c echo.Context) string { return c.Response().Header().Get(headerRequestID) }

// withRequestID copies a valid X-Request-ID of the request to the response, or generates
// one.
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

// safeID reports whether a client's request id can be logged and returned.
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

// withSpan starts a span in the client's trace, or in a new one. The request of middleware
// outside of it has no span.
func (a *API) withSpan(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		method := methodLabel(c)
		if method == unknownMethod {
			method = ""
		}

		r, span := a.deps.Tracer.StartServer(c.Request(), method, c.Path())
		c.SetRequest(r)
		defer func() {
			account := callerAccount(c)
			if account != "" {
				span.Set(tracing.Account(account))
			}
			span.SetStatusCode(c.Response().Status)
			span.End(nil)
		}()

		return next(c)
	}
}

// withSecurityHeaders keeps browsers from storing, framing or executing a response.
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

// withErrorResponse writes a response for the error or panic of a handler.
func (a *API) withErrorResponse(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		err := a.callRecovered(c, next)
		if err == nil {
			return nil
		}

		if c.Response().Committed {
			// The status has been sent. net/http closes the connection on this
			// panic, so the client sees a truncated response.
			a.log.ErrorContext(c.Request().Context(), "response aborted", "request_id", requestID(c),
				"route", routeLabel(c), "error", err)
			panic(http.ErrAbortHandler)
		}

		a.writeError(c, err)
		return nil
	}
}

// panicPlace is the metric label of panics in handlers.
const panicPlace = "api_request"

// callRecovered calls next and returns a panic as an error.
func (a *API) callRecovered(c echo.Context, next echo.HandlerFunc) (err error) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			panic(p)
		default:
			a.panics.Report(panicPlace, p, "request_id", requestID(c), "route", routeLabel(c))
			err = fault.Internal(errors.New("panic"), "Internal error")
		}
	}()

	return next(c)
}

// rejectExtraSlashes returns 404 for a path with more segments than its route: echo
// lets the last parameter match slashes.
func rejectExtraSlashes(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		pattern := c.Path()
		if pattern != "" && strings.Count(pattern, "/") != strings.Count(c.Request().URL.EscapedPath(), "/") {
			return echo.ErrNotFound
		}
		return next(c)
	}
}

// withDecodedParams percent-decodes the parameters of the path. echo returns them as they
// were sent if the path can be encoded in another way (URL.RawPath), else decoded.
func withDecodedParams(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if c.Request().URL.RawPath == "" {
			return next(c)
		}

		values := c.ParamValues()
		for i, value := range values {
			decoded, err := url.PathUnescape(value)
			if err != nil {
				return fault.Invalid("The path is not URL-encoded")
			}
			values[i] = decoded
		}

		return next(c)
	}
}

// requestTimeout bounds an ordinary request; ingest, recordings and the events channel have other
// bounds.
const requestTimeout = 30 * time.Second

func withTimeout(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		request := c.Request()
		ctx, cancel := context.WithTimeout(request.Context(), requestTimeout)
		defer cancel()
		c.SetRequest(request.WithContext(ctx))
		err := next(c)
		c.SetRequest(request) // the error response is not subject to the timeout
		return err
	}
}

// clientAddress returns the extractor of the client's address, which is that of the
// connection or, behind trusted proxies, that of X-Forwarded-For.
func clientAddress(proxies []netip.Prefix) echo.IPExtractor {
	if len(proxies) == 0 {
		return echo.ExtractIPDirect()
	}

	// By default echo trusts these addresses; here only the settings say who is a proxy.
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

// routeLabel returns the path pattern of the route, without values of parameters.
func routeLabel(c echo.Context) string {
	path := c.Path()
	if path != "" {
		return path
	}
	return unmatched
}

const unmatched = "unmatched"

// withAccessLog logs each request, successful ones at debug level. It never logs the query,
// the headers and path parameters, which can be tokens or phone numbers.
func (a *API) withAccessLog(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start := time.Now()
		defer func() {
			level := slog.LevelInfo
			if c.Response().Status < http.StatusBadRequest {
				level = slog.LevelDebug
			}

			a.log.Log(c.Request().Context(), level, "request",
				"request_id", requestID(c), "method", methodLabel(c), "route", routeLabel(c),
				"status", c.Response().Status, "duration", time.Since(start), "bytes", c.Response().Size,
				"account", callerAccount(c))
		}()

		return next(c)
	}
}
