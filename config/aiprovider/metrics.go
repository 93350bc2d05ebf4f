package aiprovider

import (
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/metric"
)

type metrics struct{ changes *prometheus.CounterVec }

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{changes: metric.With(reg).CounterVec("trunkline_aiprovider_changes_total",
		"Changes of AI providers, by action.", "did")}
	metric.Init(m.changes, actionCreate, actionReplace, actionDelete)
	return m
}

// Kinds of changes, as metric labels.
const (
	actionCreate  = "create"
	actionReplace = "replace"
	actionDelete  = "delete"
)
