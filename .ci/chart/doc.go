// Package chart tests deploy/helm/trunkline.
package chart
