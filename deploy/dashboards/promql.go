package dashboards

import (
	"fmt"
	"strings"
)

// classic lists the histograms that also have classic buckets. Of the others, a Prometheus
// without native histograms stores only sum and count, and quantile returns the mean.
var classic = map[string]bool{
	"trunkline_fanout_delivery_latency_seconds": true,
	"trunkline_aisession_first_audio_seconds":   true,
	"trunkline_aisession_turn_gap_seconds":      true,
	"trunkline_origination_bridged_seconds":     true,
}

// quantiles returns a query for each quantile of a histogram.
func quantiles(histogram string, of ...string) []query {
	var out []query
	for _, q := range of {
		out = append(out, query{quantile(q, histogram), "p" + strings.TrimPrefix(q, "0.")})
	}
	return out
}

// quantile returns a query for a quantile of a histogram, grouped by the labels of by.
func quantile(q, histogram string, by ...string) string {
	name, labels, _ := strings.Cut(histogram, "{")
	selector := "{S}"
	if labels != "" {
		selector = "{S," + labels
	}

	group := strings.Join(by, ", ")
	native := fmt.Sprintf("histogram_quantile(%s, sum by (%s) (rate(%s%s[R])))", q, group, name, selector)
	if !classic[name] {
		return fmt.Sprintf("%s or sum by (%s) (rate(%s_sum%s[R])) / sum by (%[2]s) (rate(%[3]s_count%[4]s[R]))", native,
			group, name, selector)
	}

	group = strings.Join(append([]string{"le"}, by...), ", ")
	return fmt.Sprintf("histogram_quantile(%s, sum by (%s) (rate(%s_bucket%s[R]))) or %s", q, group, name, selector,
		native)
}

// heatmap returns the query of a heat map, for a histogram with classic buckets.
func heatmap(title, histogram, about string) panel {
	return panel{kind: "heatmap", title: title, description: about, unit: seconds, width: pageWidth, height: 9,
		queries: []query{{
			fmt.Sprintf("sum by (le) (increase(%s_bucket{S}[R])) or (sum(increase(%[1]s{S}[R])) unless on () sum(%[1]s_bucket{S}))",
				histogram),
			"{{le}}",
		}}}
}

// rates returns a query for the rate of a counter, grouped by one or more labels.
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

	return query{fmt.Sprintf("sum by (%s) (rate(%s%s[R]))", strings.Join(by, ", "), name, selector),
		strings.Join(legend, " ")}
}

// total returns a query for the total rate of a counter.
func total(counter, legend string) query {
	return query{rates(counter).expr, legend}
}

// gauge returns a query for the sum of a gauge, grouped by one or more labels.
func gauge(name string, by ...string) query {
	q := rates(name, by...)
	q.expr = strings.Replace(strings.Replace(q.expr, "(rate(", "(", 1), "[R]))", ")", 1)
	return q
}

func withLegend(legend string, q query) query {
	q.legend = legend
	return q
}
