package main

import "testing"

func TestASeriesIsFoundInMetrics(t *testing.T) {
	t.Parallel()
	text := []byte("# TYPE a counter\na{topic=\"x\"} 7\na{topic=\"y\"} 1.5e+06\nab 3\n")
	for series, want := range map[string]float64{`a{topic="y"}`: 1.5e6, "ab": 3, "a": 0} {
		if got := seriesValue(text, series); got != want {
			t.Errorf("%s is %v, want %v", series, got, want)
		}
	}
}
