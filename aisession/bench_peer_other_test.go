//go:build !linux

package aisession_test

// servePeer is of the benchmark, which needs Linux.
func servePeer() {}
