package freeswitch

import (
	"errors"
	"slices"
	"testing"
)

func TestParseTable(t *testing.T) {
	for name, test := range map[string]struct {
		answer, free string
		want         [][]string
	}{
		"nothing":                  {"+OK\n", "b", nil},
		"names alone":              {"a|b\n+OK\n", "b", nil},
		"rows":                     {"a|b\n1|2\n|\n+OK\n", "", [][]string{{"1", "2"}, {"", ""}}},
		"a bar in the free column": {"a|b|c\n1|x|y|z|3\n+OK\n", "b", [][]string{{"1", "x|y|z", "3"}}},
		"a break in the free column": {"a|b|c\n1|x\ny|3\n4|5|6\n+OK\n", "b",
			[][]string{{"1", "x\ny", "3"}, {"4", "5", "6"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseTable(test.answer, test.free)
			if err != nil || !slices.EqualFunc(got.rows, test.want, slices.Equal[[]string]) {
				t.Errorf("got %q, %v", got.rows, err)
			}
		})
	}

	for _, answer := range []string{"", "a|b\n1|2\n", "a|b\n1\n+OK\n", "a|b\n1|2|3\n+OK\n"} {
		if got, err := parseTable(answer, ""); !errors.Is(err, errResponse) {
			t.Errorf("%q is %q, %v", answer, got.rows, err)
		}
	}
}
