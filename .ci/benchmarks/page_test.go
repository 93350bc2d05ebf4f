package main

import (
	"strings"
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

func TestAMissedGoalIsBold(t *testing.T) {
	m := &measured{Values: map[string][]float64{ours: {10, 12}, centrifugo: {20, 16}}}
	if got := atMost(centrifugo, 0.7).text(m); got != "Centrifugo ≤ 0.7" { // 0.5 and 0.75: 0.625
		t.Errorf("a goal that is held is %q", got)
	}
	if got := atLeast(centrifugo, 7).text(m); got != "**Centrifugo ≥ 7**" {
		t.Errorf("a goal that is missed is %q", got)
	}
	if got := (goal{limit: 9}).text(m); got != "**≤ 9**" {
		t.Errorf("a goal without another build that is missed is %q", got)
	}
}

func TestEveryScenarioHasItsRows(t *testing.T) {
	all := &results{Rows: map[string]*row{}}
	for _, s := range scenarios() {
		r := all.begin()
		for _, build := range s.builds {
			args := s.args
			if other, ok := s.differ[build]; ok {
				args = other
			}
			if !s.rest && !strings.HasPrefix(nameAccounts(args), "--account a1") {
				t.Errorf("%s, %s: the load is %q", s.name, build, nameAccounts(args))
			}
			for _, f := range s.figures {
				r.add(f.unit, build, 1)
			}
		}
		all.end(t.Context(), s.name, r)
	}

	page := tables(all)
	for _, s := range scenarios() {
		if !strings.Contains(page, "| "+s.load+" | ") {
			t.Errorf("the page has no row of %s", s.name)
		}
	}
}
