// Package logthrottle prevents a persistent fault from filling the log and its disk: of
// the warnings with the same message, and the same attribute route or name if they have
// one, it writes a few, then one per period, with the number of suppressed ones. So a fault
// of one route of the API does not hide that of another.
//
// Only warnings are suppressed: errors, and messages below the level of a warning, are
// always written. The package has no goroutine.
package logthrottle

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Limits of the warnings with one message and route.
const (
	Burst  = 5 // per Period
	Period = 30 * time.Second
)

// Handler passes records to another handler, and suppresses repeated warnings.
type Handler struct {
	inner  slog.Handler
	counts *warnings // shared with the results of WithAttrs and WithGroup
}

// New returns a handler that writes to inner.
func New(inner slog.Handler) *Handler {
	return &Handler{inner: inner, counts: &warnings{byKey: map[string]*warningCount{}}}
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

	suppressed, allowed := h.counts.allow(key(r), r.Time)
	if !allowed {
		return nil
	}
	if suppressed > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("held_back", suppressed))
	}

	return h.inner.Handle(ctx, r)
}

// key returns the message, with the value of the attribute route or name if r has one.
func key(r slog.Record) string {
	key := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "route" || a.Key == "name" {
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

// warnings holds the recent warnings, by key.
type warnings struct {
	mu    sync.Mutex
	byKey map[string]*warningCount
}

type warningCount struct {
	periodStart time.Time
	logged      int // written in the period
	suppressed  int // since the last one written
}

// maxCountedWarnings bounds the number of keys. Messages and routes are few constants; names may be many.
const maxCountedWarnings = 1000

// allow reports whether a warning may be written, and how many were suppressed since the
// last one.
func (w *warnings) allow(key string, now time.Time) (suppressed int, allowed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()

	count := w.byKey[key]
	if count == nil {
		// Forgetting all is enough: a fault that lasts is written a few times more.
		if len(w.byKey) >= maxCountedWarnings {
			clear(w.byKey)
		}
		count = &warningCount{periodStart: now}
		w.byKey[key] = count
	}

	// A clock that was set back also starts a period.
	age := now.Sub(count.periodStart)
	if age >= Period || age < 0 {
		// The last period was not full, or one passed without a warning: the fault was away.
		if count.logged < Burst || age >= 2*Period || age < 0 {
			count.logged = 0
		} else { // the fault lasts: one warning from now on
			count.logged = Burst - 1
		}
		count.periodStart = now
	}

	if count.logged >= Burst {
		count.suppressed++
		return 0, false
	}

	count.logged++
	suppressed, count.suppressed = count.suppressed, 0
	return suppressed, true
}
