package cli

import "time"

// Progress reports the progress of a long command on stderr, once a second and at its end.
type Progress struct {
	program    *Program
	items      string    // plural noun
	reportedAt time.Time // the last line
}

// Progress starts a report; items is the plural noun for them.
func (p *Program) Progress(items string) *Progress { return &Progress{p, items, time.Now()} }

// Report shows that done of total items are processed.
func (r *Progress) Report(done, total int) {
	if time.Since(r.reportedAt) < time.Second && done < total {
		return
	}
	r.reportedAt = time.Now()
	r.program.Printf("%d of %d %s", done, total, r.items)
}
