package main

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain skips the scenarios, which take their time by the clock, with
// -short.
func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("trunkline-bench: skipped, -short")
		return
	}
	os.Exit(m.Run())
}
