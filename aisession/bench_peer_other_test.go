//go:build !linux

package aisession_test

// serveBenchPeer is of the benchmark, which needs Linux.
func serveBenchPeer() {}
