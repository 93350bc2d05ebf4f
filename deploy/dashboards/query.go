package dashboards

import (
	"fmt"
	"strings"
)

// classic are the histograms that have classic buckets too. Of the others a
// Prometheus without native histograms knows sum and count alone: quantile then
// gives the mean.
var classic = map[string]bool{
	"trunkline_fanout_delivery_latency_seconds": true,
	"trunkline_aisession_first_audio_seconds":   true,
	"trunkline_aisession_turn_gap_seconds":      true,
	"trunkline_origination_bridged_seconds":     true,
}

// quantiles is a query for each quantile of a histogram.
func quantiles(histogram string, of ...string) []query {
	var out []query
	for _, q := range of {
		out = append(out, query{quantile(q, histogram), "p" + strings.TrimPrefix(q, "0.")})
	}
	return out
}

// quantile is of a histogram, with the labels of by kept.
func quantile(q, histogram string, by ...string) string {
	name, labels, _ := strings.Cut(histogram, "{")
	selector := "{S}"
	if labels != "" {
		selector = "{S," + labels
	}
	group := strings.Join(by, ", ")
	native := fmt.Sprintf("histogram_quantile(%s, sum by (%s) (rate(%s%s[R])))", q, group, name, selector)
	if !classic[name] {
		return fmt.Sprintf("%s or sum by (%s) (rate(%s_sum%s[R])) / sum by (%[2]s) (rate(%[3]s_count%[4]s[R]))", native, group, name, selector)
	}
	group = strings.Join(append([]string{"le"}, by...), ", ")
	return fmt.Sprintf("histogram_quantile(%s, sum by (%s) (rate(%s_bucket%s[R]))) or %s", q, group, name, selector, native)
}

// heat is the heat map of a histogram that has classic buckets.
func heat(title, histogram, about string) panel {
	return panel{kind: "heatmap", title: title, about: about, unit: seconds, width: pageWidth, height: 9, queries: []query{{
		fmt.Sprintf("sum by (le) (increase(%s_bucket{S}[R])) or (sum(increase(%[1]s{S}[R])) unless on () sum(%[1]s_bucket{S}))", histogram),
		"{{le}}",
	}}}
}

// rates is how fast a counter rises, by one label or more.
func rates(counter string, by ...string) query {
	var legend []string
	for _, label := range by {
		legend = append(legend, "{{"+label+"}}")
	}
	name, labels, _ := strings.Cut(counter, "{")
	selector := "{S}"
	if labels != "" {
		selector = "{S," + labels
	}
	return query{fmt.Sprintf("sum by (%s) (rate(%s%s[R]))", strings.Join(by, ", "), name, selector), strings.Join(legend, " ")}
}

// total is how fast a counter rises, all together.
func total(counter, legend string) query {
	return query{rates(counter).expr, legend}
}

// gauge is the sum of a gauge, by one label or more.
func gauge(name string, by ...string) query {
	q := rates(name, by...)
	q.expr = strings.Replace(strings.Replace(q.expr, "(rate(", "(", 1), "[R]))", ")", 1)
	return q
}

func named(legend string, q query) query {
	q.legend = legend
	return q
}
