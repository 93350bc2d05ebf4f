// Package dashboards says what Trunkline's Grafana dashboards show. The JSON
// files beside it are what Grafana reads; they are made from it by
//
//	go test ./deploy/dashboards -update
//
// and its test fails when they differ. Queries are written for any Prometheus:
// with classic histograms, with native ones, or with both.
package dashboards
