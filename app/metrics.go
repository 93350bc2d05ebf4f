package app

import "github.com/prometheus/client_golang/prometheus"

func buildInfo(version string) prometheus.Collector {
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "trunkline_build_info", Help: "1; the version is the label."}, []string{"version"})
	info.WithLabelValues(version).Set(1)
	return info
}
