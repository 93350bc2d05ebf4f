package report

import (
	"strings"
	"testing"
)

// A start key that no page gave is refused.
func TestAStartKeyIsOnlyWhatAPageGave(t *testing.T) {
	want := Cursor{1_795_000_000, "c.1"}
	good := want.Key()
	for _, key := range []string{"x", "!", good + "A", good[:len(good)-1], Cursor{1, "a\x00"}.Key(),
		Cursor{1, "\xff"}.Key(), strings.Repeat("A", 10_000)} {
		if c, ok := ParseCursor(key); ok {
			t.Errorf("%q is %+v", key, c)
		}
	}

	if c, ok := ParseCursor(good); !ok || c != want {
		t.Errorf("%q is %+v, %v", good, c, ok)
	}
	if c, ok := ParseCursor(""); !ok || c != (Cursor{}) {
		t.Errorf("no key is %+v, %v", c, ok)
	}
}

func FuzzStartKey(f *testing.F) {
	f.Add(Cursor{1_795_000_000, "c"}.Key())
	f.Fuzz(func(t *testing.T, key string) {
		if c, ok := ParseCursor(key); ok && key != "" && c.Key() != key {
			t.Errorf("%q is %q again", key, c.Key())
		}
	})
}
