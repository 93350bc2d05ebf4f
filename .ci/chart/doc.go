// Package chart holds the test of deploy/helm/trunkline: Helm's own engine
// renders it, and every object is decoded strictly as the type that Kubernetes,
// cert-manager and the Prometheus operator have for it. Those are too big for
// the product's go.mod, so this is a module of its own.
package chart
