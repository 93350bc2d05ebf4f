package main

import (
	"fmt"
	"io"
	"time"
)

// meter tells on stderr how far a long work is, once a second and at its end.
type meter struct {
	to   io.Writer
	what string
	told time.Time
}

func (p *program) meter(what string) *meter { return &meter{p.err, what, time.Now()} }

func (m *meter) tell(done, total int) {
	if time.Since(m.told) < time.Second && done < total {
		return
	}
	m.told = time.Now()
	fmt.Fprintf(m.to, "trunkline: %d of %d %s\n", done, total, m.what)
}
