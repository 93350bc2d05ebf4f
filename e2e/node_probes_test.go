package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// awaitUnready waits until the probes of a waiting node report it as not ready.
func (n *node) awaitUnready(t *testing.T, why string) {
	t.Helper()
	eventually(t, "readiness to say "+why, func() error {
		live, _, err := n.probe("/livez")
		if err != nil || live != http.StatusOK {
			return fmt.Errorf("/livez: %d %v", live, err)
		}

		if status, text, err := n.probe("/readyz"); err != nil || status != http.StatusServiceUnavailable ||
			text != why {
			return fmt.Errorf("/readyz: %d %s %v", status, text, err)
		}

		return n.checkMetric("trunkline_ready", "0")
	})
}

// checkMetric reports whether a series of the node has a value.
func (n *node) checkMetric(series, value string) error {
	_, text, err := n.probe("/metrics")
	if err != nil {
		return err
	}

	for line := range strings.Lines(text) {
		if got, ok := strings.CutPrefix(line, series+" "); ok {
			if strings.TrimSpace(got) != value {
				return fmt.Errorf("%s is %s, not %s", series, strings.TrimSpace(got), value)
			}
			return nil
		}
	}

	return fmt.Errorf("there is no %s", series)
}

// metricSum returns the sum of a metric over its labels.
func (n *node) metricSum(metric string) (sum float64, err error) {
	_, text, err := n.probe("/metrics")
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, metric)
		if !ok || rest[0] != ' ' && rest[0] != '{' {
			continue
		}

		value, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' '):]), 64)
		if err != nil {
			return 0, err
		}

		sum += value
	}

	return sum, err
}
