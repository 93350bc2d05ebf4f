package deploy_test

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// nameUses lists the metrics, labels and values in an expression.
type nameUses struct {
	selectors []selector
	grouping  []string // labels of by, on and the like
}

type selector struct {
	metric   string
	matchers []matcher
}

type matcher struct{ label, op, value string }

// parseNames parses an expression of PromQL for its names; Prometheus checks its validity.
func parseNames(expr string) (nameUses, error) {
	r := tokenReader{rest: expr}
	for {
		switch token := r.next(); {
		case token == "":
			return r.uses, nil
		case token == "{":
			return r.uses, fmt.Errorf("a selector without a metric's name before %q", r.rest)
		case token == "[":
			for token != "]" && token != "" {
				token = r.next()
			}
		case grouping[token]:
			if strings.HasPrefix(strings.TrimSpace(r.rest), "(") {
				r.uses.grouping = append(r.uses.grouping, r.labels()...)
			}
		case !namePattern.MatchString(token) || operators[token] || r.isCall():
		default:
			s := selector{metric: token}
			if strings.HasPrefix(strings.TrimSpace(r.rest), "{") {
				s.matchers = r.matchers()
			}
			r.uses.selectors = append(r.uses.selectors, s)
		}
	}
}

var (
	tokenPattern = regexp.MustCompile(
		`^(?:[a-zA-Z_:][a-zA-Z0-9_:]*|[0-9][0-9a-zA-Z.]*|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|#[^\n]*|[=!]~|!=|==|[<>]=)`)
	namePattern = regexp.MustCompile(`^[a-zA-Z_:]`)
	grouping    = wordSet("by without on ignoring group_left group_right")
	operators   = wordSet("and or unless bool offset inf nan atan2")
)

func wordSet(words string) map[string]bool {
	out := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		out[word] = true
	}
	return out
}

type tokenReader struct {
	rest string
	uses nameUses
}

// next returns the next token; "" is the end.
func (r *tokenReader) next() string {
	for {
		r.rest = strings.TrimLeft(r.rest, " \t\r\n")
		if r.rest == "" {
			return ""
		}

		found := tokenPattern.FindString(r.rest)
		if found == "" {
			_, size := utf8.DecodeRuneInString(r.rest)
			found = r.rest[:size]
		}

		r.rest = r.rest[len(found):]
		if !strings.HasPrefix(found, "#") {
			return found
		}
	}
}

// isCall reports whether the preceding name is a function or an aggregation.
func (r *tokenReader) isCall() bool {
	after := tokenReader{rest: r.rest}
	next := after.next()
	return next == "(" || next == "by" || next == "without"
}

// labels parses a list in parentheses.
func (r *tokenReader) labels() (labels []string) {
	for token := r.next(); token != ")" && token != ""; token = r.next() {
		if namePattern.MatchString(token) {
			labels = append(labels, token)
		}
	}
	return labels
}

// matchers parses the content of braces.
func (r *tokenReader) matchers() (out []matcher) {
	for token := r.next(); token != "}" && token != ""; token = r.next() {
		if namePattern.MatchString(token) {
			m := matcher{label: token, op: r.next()}
			quoted := r.next()
			m.value = strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(strings.Trim(quoted, `"'`))
			out = append(out, m)
		}
	}
	return out
}

func TestParseNames(t *testing.T) {
	for expr, want := range map[string]nameUses{
		`up`: {selectors: []selector{{metric: "up"}}},
		`sum by (a, b) (rate(x_total{c="1",d=~"2|3"}[5m]))`: {
			[]selector{{"x_total", []matcher{{"c", "=", "1"}, {"d", "=~", "2|3"}}}}, []string{"a", "b"}},
		`sum(x) without (a) > 5e8`: {[]selector{{metric: "x"}}, []string{"a"}},
		`x{a="}\"{"} and on (j) y or vector(0)`: {[]selector{{"x", []matcher{{"a", "=", `}"{`}}},
			{metric: "y"}}, []string{"j"}},
		`x * on (a) group_left (b) y # and z`: {[]selector{{metric: "x"}, {metric: "y"}},
			[]string{"a", "b"}},
		`histogram_quantile(0.99, sum by (le) (rate(h[1h])))`: {[]selector{{metric: "h"}}, []string{"le"}},
		`x offset 5m == bool 1`:                               {selectors: []selector{{metric: "x"}}},
	} {
		if got, err := parseNames(expr); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", expr, got, err, want)
		}
	}

	if got, err := parseNames(`sum({a="b"})`); err == nil {
		t.Errorf("a selector without a name is taken as %+v", got)
	}
}

// series holds the series of one scrape: by metric and label, the values.
type series map[string]map[string]map[string]bool

// addScrape adds a scrape in the text format.
func (all series) addScrape(exposition string) error {
	for line := range strings.Lines(exposition) {
		if comment := strings.Fields(line); comment[0] == "#" {
			if comment[1] == "TYPE" && comment[3] == "histogram" {
				all.add(selector{metric: comment[2]}) // a native histogram can be queried by its own name
			}
			continue
		}

		found, err := parseNames(line[:strings.LastIndexByte(line, ' ')])
		if err != nil || len(found.selectors) != 1 {
			return fmt.Errorf("no series: %q: %w", line, err)
		}

		s := found.selectors[0]
		all.add(s)
		if base, ok := strings.CutSuffix(s.metric, "_count"); ok && all[base] != nil {
			all.add(selector{base, s.matchers})
		}
	}

	return nil
}

func (all series) add(s selector) {
	if all[s.metric] == nil {
		all[s.metric] = map[string]map[string]bool{}
	}
	for _, m := range s.matchers {
		if all[s.metric][m.label] == nil {
			all[s.metric][m.label] = map[string]bool{}
		}
		all[s.metric][m.label][m.value] = true
	}
}

// missing returns the parts of an expression that a scrape does not have. The labels job and
// instance always exist, because Prometheus adds them.
func (all series) missing(expr string) (missing []string) {
	asked, err := parseNames(expr)
	if err != nil {
		return []string{err.Error()}
	}

	labels := map[string]bool{"job": true, "instance": true}
	for _, s := range asked.selectors {
		if s.metric == "up" {
			continue
		}

		has := all[s.metric]
		if has == nil {
			missing = append(missing, s.metric)
		}

		for label := range maps.Keys(has) {
			labels[label] = true
		}

		for _, m := range s.matchers {
			if has != nil && m.label != "job" && m.label != "instance" && !m.matchesAny(has[m.label]) {
				missing = append(missing, fmt.Sprintf("%s{%s%s%q}", s.metric, m.label, m.op, m.value))
			}
		}

		if has == nil {
			return missing // its labels cannot be checked
		}
	}

	for _, label := range asked.grouping {
		if !labels[label] {
			missing = append(missing, "label "+label)
		}
	}

	return missing
}

// matchesAny reports whether each alternative of a regular expression matches a value, so that
// its series exist from the start.
func (m matcher) matchesAny(values map[string]bool) bool {
	alternatives := []string{regexp.QuoteMeta(m.value)}
	if m.op == "=~" || m.op == "!~" {
		alternatives = strings.Split(m.value, "|")
	}

	for _, one := range alternatives {
		pattern, err := regexp.Compile("^(?:" + one + ")$")
		if err != nil || !slices.ContainsFunc(slices.Collect(maps.Keys(values)), pattern.MatchString) {
			return false
		}
	}

	return true
}
