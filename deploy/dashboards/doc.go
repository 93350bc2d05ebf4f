// Package dashboards defines Trunkline's Grafana dashboards. Grafana reads the JSON files
// in deploy/helm/trunkline/files/dashboards, which
//
//	go test ./deploy/dashboards -update
//
// generates; the test fails when they are out of date. The queries work on any Prometheus: with
// classic histograms, with native ones, or with both.
package dashboards
