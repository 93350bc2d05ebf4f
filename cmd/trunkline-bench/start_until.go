package main

import "context"

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
