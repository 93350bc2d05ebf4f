package cli

import "time"

// Progress reports the progress of a long command on stderr, once a second and at its end.
type Progress struct {
	program  *Program
	what     string
	reported time.Time
}

// Progress starts a report; what is the plural noun of the items.
func (p *Program) Progress(what string) *Progress { return &Progress{p, what, time.Now()} }

// Report shows that done of total items are processed.
func (r *Progress) Report(done, total int) {
	if time.Since(r.reported) < time.Second && done < total {
		return
	}
	r.reported = time.Now()
	r.program.Printf("%d of %d %s", done, total, r.what)
}
