package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
)

// results are the figures of all runs, kept in a file so that a part can be measured again.
type results struct {
	Date, Revision, Old, Machine string
	Rows                         map[string]*row
}

// row has the figures of one scenario or benchmark. A run is the same round of all builds.
type row struct {
	Revision string               // of this tree
	Figures  map[string]*measured // by unit; of Go benchmarks, by name and unit
}

// measured is one figure: by build, its value in each round.
type measured struct{ Values map[string][]float64 }

func readResults(file string) (*results, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return &results{Rows: map[string]*row{}}, nil
	} else if err != nil {
		return nil, err
	}

	r := &results{}
	err = json.Unmarshal(data, r)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return r, nil
}

func (r *results) write(file string) error {
	data, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}

// begin returns a row without figures.
func (r *results) begin() *row {
	return &row{Revision: r.Revision, Figures: map[string]*measured{}}
}

// end puts a measured row in the place of an earlier one, unless the measurement was interrupted.
func (r *results) end(ctx context.Context, name string, measuredRow *row) {
	if ctx.Err() == nil && len(measuredRow.Figures) > 0 {
		r.Rows[name] = measuredRow
	}
}

// revisions returns those of this tree that the rows were measured at.
func (r *results) revisions() []string {
	measuredAt := map[string]bool{}
	for _, one := range r.Rows {
		measuredAt[one.Revision] = true
	}
	return slices.Sorted(maps.Keys(measuredAt))
}

func (r *row) add(figure, build string, value float64) {
	m := r.Figures[figure]
	if m == nil {
		m = &measured{Values: map[string][]float64{}}
		r.Figures[figure] = m
	}
	m.Values[build] = append(m.Values[build], value)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

// ratio returns our figure to another build's, the median of the rounds.
func (m *measured) ratio(against string) (ratio float64, ok bool) {
	var ratios []float64
	for i, value := range m.Values[ours] {
		other := m.Values[against]
		if i < len(other) && other[i] != 0 {
			ratios = append(ratios, value/other[i])
		}
	}
	if len(ratios) == 0 {
		return 0, false
	}
	return median(ratios), true
}
