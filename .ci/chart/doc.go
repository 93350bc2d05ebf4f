// Package chart holds the test of deploy/helm/trunkline: it renders the chart with Helm's own
// engine and decodes every object strictly as its type of Kubernetes, cert-manager or the
// Prometheus operator. It is a separate module because these dependencies are too large for the
// product's go.mod.
package chart
