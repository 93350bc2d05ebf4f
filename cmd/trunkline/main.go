// Command trunkline is the whole of Trunkline: the server in any role, the
// tools that manage it, and clients of it. main sets up the process; root.go
// has the commands, and each has a file of its own.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	p := &program{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.Environ(), serve: serve}
	os.Exit(p.run(untilSignal(), os.Args[1:]))
}

// untilSignal is a context that the first SIGINT or SIGTERM ends. A second one
// ends the process at once.
func untilSignal() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(exitFailed)
	}()
	return ctx
}
