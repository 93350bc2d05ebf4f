package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/metric"
)

type metrics struct {
	requests  *prometheus.CounterVec   // by route, method, status class
	seconds   *prometheus.HistogramVec // by route, method
	inFlight  prometheus.Gauge
	longLived map[string]bool // paths of routes whose duration is not measured
}

var statusClasses = []string{"1xx", "2xx", "3xx", "4xx", "5xx"}

func newMetrics(reg prometheus.Registerer, routes []route) *metrics {
	f := metric.With(reg)
	m := &metrics{
		requests: f.CounterVec("trunkline_api_requests_total", "HTTP requests, by route, method and class of status.",
			"route", "method", "status"),
		seconds: f.NewHistogramVec(
			metric.NativeHistogram("trunkline_api_request_seconds",
				"Duration of HTTP requests, by route and method, without those of subscribers.", 100),
			[]string{"route", "method"}),
		inFlight:  f.Gauge("trunkline_api_requests_in_flight", "HTTP requests in progress."),
		longLived: make(map[string]bool),
	}

	for _, r := range routes {
		m.longLived[r.path] = r.longLived
		if !r.longLived {
			m.seconds.WithLabelValues(r.path, r.method)
		}

		for _, class := range statusClasses {
			m.requests.WithLabelValues(r.path, r.method, class)
		}
	}

	return m
}

func (a *API) withMetrics(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start := time.Now()
		a.metrics.inFlight.Inc()
		defer func() {
			a.metrics.inFlight.Dec()
			route, method := routeLabel(c), methodLabel(c)
			a.metrics.requests.WithLabelValues(route, method, statusClass(c.Response().Status)).Inc()
			if !a.metrics.longLived[route] {
				a.metrics.seconds.WithLabelValues(route, method).Observe(time.Since(start).Seconds())
			}
		}()

		return next(c)
	}
}

func statusClass(status int) string { return strconv.Itoa(status/100) + "xx" }

const unknownMethod = "other"

// methodLabel returns the request's method as a metric label, or unknownMethod for a method
// that no route has, so that clients cannot create labels.
func methodLabel(c echo.Context) string {
	switch m := c.Request().Method; m {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions:
		return m
	default:
		return unknownMethod
	}
}
