package audit

import (
	"context"
	"os"
	"os/user"
	"strconv"
)

// Caller identifies the client of a request.
type Caller struct {
	Actor   string // as in Entry
	Address string // IP address; "" for a local action
}

// CommandCaller returns the caller for actions of a management command: the system user
// that runs it.
func CommandCaller() Caller {
	name := strconv.Itoa(os.Getuid()) // if the system has no such user, as in a container
	current, err := user.Current()
	if err == nil && current.Username != "" {
		name = current.Username
	}
	return Caller{Actor: actorCLI + name}
}

type callerKey struct{}

// WithCaller returns a context with the caller of a request.
func WithCaller(ctx context.Context, caller Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, caller)
}

// CallerOf returns the caller that WithCaller set, or a zero Caller.
func CallerOf(ctx context.Context) Caller {
	caller, _ := ctx.Value(callerKey{}).(Caller)
	return caller
}
