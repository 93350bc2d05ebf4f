package main

import "context"

// cleanups are the cleanup functions of a run, called in reverse order.
type cleanups []func()

func (e *cleanups) add(end func()) { *e = append(*e, end) }

func (e *cleanups) run() {
	for i := len(*e) - 1; i >= 0; i-- {
		(*e)[i]()
	}
}

// startUntil runs work until the returned function is called, which returns work's error.
func startUntil(ctx context.Context, work func(context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- work(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}
}
