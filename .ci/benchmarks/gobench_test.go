package main

import (
	"testing"
)

func TestLinesOfGoBenchmarksAreRead(t *testing.T) {
	const out = `goos: linux
BenchmarkFold-2   	       1	3351094 ns/op	    149000 events/cpu-s	  120 B/op	 3 allocs/op
BenchmarkProduce/ours-2 	20000	   700 ns/op
BenchmarkRelay	1	9 ns/op	0.108 %/call	0.61 p50-ms
PASS
`
	for _, test := range []struct {
		units []string
		want  map[string]float64
	}{
		{[]string{"events/cpu-s", "ns/op"}, map[string]float64{
			"Fold, events/cpu-s": 149000, "Produce/ours, ns/op": 700, "Relay, ns/op": 9}},
		{nil, map[string]float64{
			"Fold, events/cpu-s": 149000, "Produce/ours, ns/op": 700, "Relay, %/call": 0.108, "Relay, p50-ms": 0.61}},
	} {
		got := parseGo(out, test.units)
		if len(got) != len(test.want) {
			t.Errorf("units %v: got %v, want %v", test.units, got, test.want)
		}
		for name, value := range test.want {
			if got[name] != value {
				t.Errorf("units %v: %s is %v, want %v", test.units, name, got[name], value)
			}
		}
	}
}
