package main

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain skips the scenarios with -short, because they run for a fixed time.
func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("trunkline-bench: skipped, -short")
		return
	}
	os.Exit(m.Run())
}
