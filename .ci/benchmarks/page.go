package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The lines of the page between which the tables stand.
const (
	beginMark = "<!-- measured by make benchmarks: begin -->"
	endMark   = "<!-- measured by make benchmarks: end -->"
)

// writePage replaces the tables of a page.
func writePage(file string, r *results) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}

	before, rest, found := strings.Cut(string(page), beginMark)
	_, after, ended := strings.Cut(rest, endMark)
	if !found || !ended {
		return fmt.Errorf("%s has no lines %q and %q", file, beginMark, endMark)
	}

	return os.WriteFile(file, []byte(before+beginMark+"\n\n"+tables(r)+"\n"+endMark+after), 0o644)
}

func tables(r *results) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: this tree at %s, \"old\" at %s. %s. Medians; ratios are those of builds that ran in turn. "+
		"**Bold**: misses its goal.\n\n", r.Date, strings.Join(r.revisions(), " and "), r.Old, r.Machine)
	b.WriteString("| load | figure | ours | old | Centrifugo | floor or base | ratios: old, Centrifugo, floor | goals |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|\n")

	for _, s := range scenarios() {
		measuredRow := r.Rows[s.name]
		if measuredRow == nil {
			continue
		}
		for i, f := range s.figures {
			m := measuredRow.Figures[f.unit]
			if m == nil {
				continue
			}
			load := ""
			if i == 0 {
				load = s.load
			}
			b.WriteString(scenarioLine(load, f, m))
		}
	}

	b.WriteString("\nGo benchmarks, one process each, this tree and old in turn:\n\n")
	b.WriteString("| package | benchmark | ours | old | ratio | goals |\n|---|---|---|---|---|---|\n")
	for _, g := range goBenchmarks() {
		measuredRow := r.Rows[g.name()]
		if measuredRow == nil {
			continue
		}
		folder, goal := "`"+g.folder+"`", g.goal
		hidden := regexp.MustCompile(cmp.Or(g.hidden, `^$`))
		for _, name := range slices.Sorted(maps.Keys(measuredRow.Figures)) {
			m := measuredRow.Figures[name]
			if len(m.Values[ours]) == 0 || hidden.MatchString(name) { // the old tree alone has it
				continue
			}

			ratio, compared := m.ratio(old)
			text := "–" // the old tree does not run it
			if compared {
				text = short(ratio)
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n",
				folder, name, value(m.Values[ours]), value(m.Values[old]), text, goal)
			folder, goal = "", ""
		}
	}

	return b.String()
}

func (g goBenchmark) name() string { return "go:" + g.folder + " " + g.pattern }

func scenarioLine(load string, f figure, m *measured) string {
	beside := base
	for _, floor := range []string{plain, coalesced} {
		if len(m.Values[floor]) > 0 {
			beside = floor
		}
	}

	var ratios, goals []string
	for _, build := range []string{old, centrifugo, beside} {
		ratio, ok := m.ratio(build)
		text := "–"
		if ok {
			text = short(ratio)
		}
		ratios = append(ratios, text)
	}

	for _, g := range f.goals {
		goals = append(goals, g.text(m))
	}

	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s | %s |\n",
		load, f.unit, value(m.Values[ours]), value(m.Values[old]), value(m.Values[centrifugo]),
		value(m.Values[beside]), strings.Join(ratios, ", "), strings.Join(goals, ", "))
}

// text returns the goal, bold if it is missed.
func (g goal) text(m *measured) string {
	got, ok := median(m.Values[ours]), true
	names := map[string]string{
		"": "", old: "old ", centrifugo: "Centrifugo ", plain: "floor ", coalesced: "floor ", base: "base ",
	}
	if g.against != "" {
		got, ok = m.ratio(g.against)
	}

	sign := map[bool]string{true: "≥", false: "≤"}[g.atLeast]
	text := names[g.against] + sign + " " + strconv.FormatFloat(g.limit, 'f', -1, 64)
	if ok && (g.atLeast && got < g.limit || !g.atLeast && got > g.limit) {
		return "**" + text + "**"
	}
	return text
}

// value returns the median, and the range of several rounds.
func value(values []float64) string {
	if len(values) == 0 {
		return ""
	}
	least, most := slices.Min(values), slices.Max(values)
	if len(values) == 1 || short(least) == short(most) {
		return short(median(values))
	}
	return fmt.Sprintf("%s (%s–%s)", short(median(values)), short(least), short(most))
}

// short returns three significant digits.
func short(v float64) string {
	switch size := math.Abs(v); {
	case size >= 10_000:
		return strconv.FormatFloat(math.Round(v/1000), 'f', 0, 64) + " k"
	case size >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case size >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}
