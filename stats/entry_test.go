package stats

import (
	"strings"
	"testing"
)

func TestKeysWithSeparatorsInIds(t *testing.T) {
	for _, k := range []key{newKey(kindQueue, "acme", "a|b|7", 900), newKey(kindAgent, "acme", "x", 0),
		newKey(kindOpenCall, "acme", "c|1", 0), newKey(kindOpenAgent, "acme", "", 0)} {
		if parsed, err := parseKey(k.String()); err != nil || parsed != k {
			t.Errorf("%s: %v %v", k, parsed, err)
		}
	}

	for _, wrong := range []string{"", "acme", "acme|queue|x", "acme|queue|x|y", "acme|other|x", "|position",
		strings.Repeat("|", 4)} {
		if k, err := parseKey(wrong); err == nil {
			t.Errorf("%q is %v", wrong, k)
		}
	}
}
