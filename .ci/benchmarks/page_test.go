package main

import (
	"strings"
	"testing"
)

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
			if other, ok := s.otherArgs[build]; ok {
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
