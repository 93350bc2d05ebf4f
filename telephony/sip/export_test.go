package sip

import (
	"context"
	"sync/atomic"
)

// CountContexts counts the contexts below that of the server's transactions that were not
// released. Call it before Run.
func CountContexts(s *Server) (unreleased func() int64) {
	counted := &countedContext{Context: s.transports.transactionCtx}
	s.transports.transactionCtx = counted
	return counted.children.Load
}

// countedContext counts the contexts made from it until they are released.
type countedContext struct {
	context.Context
	children atomic.Int64
}

// Value hides the context within, to which package context would otherwise add children itself.
func (c *countedContext) Value(any) any { return nil }

// AfterFunc is called by package context for each child; what it returns is called when the child is released.
func (c *countedContext) AfterFunc(f func()) func() bool {
	c.children.Add(1)
	stop := context.AfterFunc(c.Context, f)
	return func() bool {
		c.children.Add(-1)
		return stop()
	}
}
