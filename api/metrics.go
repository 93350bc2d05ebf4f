package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	requests  *prometheus.CounterVec   // by route, method, status class
	seconds   *prometheus.HistogramVec // by route, method
	open      prometheus.Gauge
	longLived map[string]bool // routes whose duration is not measured
}

var statusClasses = []string{"1xx", "2xx", "3xx", "4xx", "5xx"}

func newMetrics(reg prometheus.Registerer, routes []route) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_api_requests_total",
			Help: "HTTP requests, by route, method and class of status.",
		}, []string{"route", "method", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:                            "trunkline_api_request_seconds",
			Help:                            "Duration of HTTP requests, by route and method, without those of subscribers.",
			NativeHistogramBucketFactor:     1.1,
			NativeHistogramMaxBucketNumber:  100,
			NativeHistogramMinResetDuration: time.Hour,
		}, []string{"route", "method"}),
		open: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_api_requests_in_flight",
			Help: "HTTP requests in progress.",
		}),
		longLived: make(map[string]bool),
	}
	for _, r := range routes {
		if m.longLived[r.path] = r.longLived; !r.longLived {
			m.seconds.WithLabelValues(r.path, r.method)
		}
		for _, class := range statusClasses {
			m.requests.WithLabelValues(r.path, r.method, class)
		}
	}
	for _, c := range []prometheus.Collector{m.requests, m.seconds, m.open} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (a *API) withMetrics(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		began := time.Now()
		a.metrics.open.Inc()
		defer func() {
			a.metrics.open.Dec()
			route, method := routeOf(c), methodOf(c)
			a.metrics.requests.WithLabelValues(route, method, classOf(c.Response().Status)).Inc()
			if !a.metrics.longLived[route] {
				a.metrics.seconds.WithLabelValues(route, method).Observe(time.Since(began).Seconds())
			}
		}()
		return next(c)
	}
}

func classOf(status int) string { return strconv.Itoa(status/100) + "xx" }

const unknownMethod = "other"

// methodOf returns the request's method as a metric label: methods that clients
// invent are unknownMethod.
func methodOf(c echo.Context) string {
	switch m := c.Request().Method; m {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions:
		return m
	default:
		return unknownMethod
	}
}
