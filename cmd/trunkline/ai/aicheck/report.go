package aicheck

import (
	"fmt"
	"io"
	"strings"

	"trunkline/cmd/internal/cli"
)

// Result is the result of one check.
type Result string

// The results.
const (
	Pass Result = "pass"
	Warn Result = "warn" // Trunkline tolerates it
	Fail Result = "fail" // impairs calls
)

// CheckedPoint is one check.
type CheckedPoint struct {
	Name   string `json:"name"`
	Result Result `json:"result"`
	Detail string `json:"detail"`
}

// Report holds the results of a check.
type Report struct {
	URL      string         `json:"url"`
	Protocol string         `json:"protocol,omitempty"`
	Format   string         `json:"format"`
	OK       bool           `json:"ok"` // nothing failed
	Points   []CheckedPoint `json:"points"`
}

func (r *Report) add(name string, result Result, format string, args ...any) {
	r.Points = append(r.Points, CheckedPoint{name, result, cli.Printable(fmt.Sprintf(format, args...))})
}

// Failed counts the points that failed.
func (r *Report) Failed() (n int) {
	for _, p := range r.Points {
		if p.Result == Fail {
			n++
		}
	}
	return n
}

// Print writes the report as text, a line per point.
func (r *Report) Print(w io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s, ", cli.Printable(r.URL))
	if r.Protocol != "" {
		fmt.Fprintf(&text, "%s, ", r.Protocol)
	}

	fmt.Fprintf(&text, "%s\n", r.Format)
	for _, p := range r.Points {
		fmt.Fprintf(&text, "%s  %-14s %s\n", p.Result, p.Name, p.Detail)
	}

	_, err := io.WriteString(w, text.String())
	if err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}

	return nil
}
