// Command trunkline-bench measures a running Trunkline: fanout, pipeline and, of its own processes, fleet. It
// also contains the baseline servers, whose figure docs/benchmarks.md calls the floor.
package main

import (
	"os"

	"trunkline/cmd/internal/cli"
)

func main() {
	p := &cli.Program{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Environ()}
	root := p.Root("trunkline-bench", "Measure a running Trunkline", commands(p)...)
	os.Exit(p.Run(cli.SignalContext(), root, os.Args[1:]))
}
