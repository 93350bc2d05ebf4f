// Package logthrottle keeps a fault that lasts from filling the log, and the disk
// that the log is on: of warnings with the same message, and the same route where
// they have one, a few are written, then one in a while, which says how many were
// held back. So a fault of one route of the API does not hide that of another.
//
// Only warnings are held back: errors, and messages below the level of a warning,
// are always written. It has no goroutine.
package logthrottle

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Limits of the warnings with one message and route.
const (
	Burst = 5                // in each Period
	Every = 30 * time.Second // Period
)

// Handler writes to another handler, warnings only logthrottle.
type Handler struct {
	inner  slog.Handler
	counts *counts // shared with what WithAttrs and WithGroup make
}

// New makes a handler that writes to inner.
func New(inner slog.Handler) *Handler {
	return &Handler{inner: inner, counts: &counts{lines: map[string]*line{}}}
}

// Enabled implements slog.Handler.
func (h *Handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.inner.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level != slog.LevelWarn {
		return h.inner.Handle(ctx, r)
	}
	held, due := h.counts.due(key(r), r.Time)
	if !due {
		return nil
	}
	if held > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("held_back", held))
	}
	return h.inner.Handle(ctx, r)
}

// key is the message, with the value of the attribute route where r has one.
func key(r slog.Record) string {
	key := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "route" {
			key += " " + a.Value.String()
			return false
		}
		return true
	})
	return key
}

// WithAttrs implements slog.Handler.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &Handler{h.inner.WithAttrs(attrs), h.counts}
}

// WithGroup implements slog.Handler.
func (h *Handler) WithGroup(name string) slog.Handler {
	return &Handler{h.inner.WithGroup(name), h.counts}
}

// counts are the warnings of late, by key.
type counts struct {
	mu    sync.Mutex
	lines map[string]*line
}

type line struct {
	since  time.Time // of the period
	logged int       // in it
	held   int       // since the last one that was logged
}

// most bounds what is remembered. Messages and routes are constants, and few.
const most = 1000

// due reports whether a warning may be written, and how many were not since the
// last one.
func (c *counts) due(key string, now time.Time) (held int, due bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lines[key]
	if l == nil {
		if len(c.lines) >= most {
			clear(c.lines)
		}
		l = &line{since: now}
		c.lines[key] = l
	}
	// A clock that was set back begins a period too.
	if age := now.Sub(l.since); age >= Every || age < 0 {
		if l.logged < Burst || age >= 2*Every || age < 0 {
			l.logged = 0
		} else { // it lasts: one is enough from now on
			l.logged = Burst - 1
		}
		l.since = now
	}
	if l.logged >= Burst {
		l.held++
		return 0, false
	}
	l.logged++
	held, l.held = l.held, 0
	return held, true
}
