package jsonscan

import "testing"

func TestFirst(t *testing.T) {
	for in, want := range map[string]string{`[ {"a":1}, 2]`: `{"a":1}`, `[ ]`: "", `{}`: "", ``: ""} {
		if got := Value(in).First(); string(got) != want {
			t.Errorf("of %q: got %q, want %q", in, got, want)
		}
	}
}

func TestLast(t *testing.T) {
	for in, want := range map[string]string{
		`[ {"a":1}, 2 ]`: `2`, `[1,[2,3] , {"b":[4]}]`: `{"b":[4]}`, `[7]`: `7`, `[ ]`: "", `{}`: "", ``: "", `[1,`: "",
	} {
		if got := Value(in).Last(); string(got) != want {
			t.Errorf("of %q: got %q, want %q", in, got, want)
		}
	}
}

func TestElements(t *testing.T) {
	for in, want := range map[string]string{
		`[ {"a":[1]} , "b" ,3]`: `{"a":[1]};"b";3;`, `[ ]`: "", `{"a":1}`: "", ``: "", `[1,`: "1;",
	} {
		var got string
		for v := range Value(in).Elements() {
			got += string(v) + ";"
		}

		if got != want {
			t.Errorf("of %q: got %q, want %q", in, got, want)
		}
	}

	for v := range Value(`[1,2]`).Elements() {
		if string(v) != "1" {
			t.Errorf("goes on after a break: %q", v)
		}
		break
	}
}
