package jsonscan

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestStrictRefuses(t *testing.T) {
	limits := Strict{MaxDepth: 3, MaxValues: 8}
	for input, want := range map[string]error{
		`{"a":[[1]]}`:             nil,
		`{"a":[[[1]]]}`:           ErrDepth,
		`[1,2,3,4,5,6,7]`:         nil,
		`[1,2,3,4,5,6,7,8]`:       ErrTooMany,
		`[{},{},{},{},{},{},{}]`:  nil,
		`[[],[],[],"",{},"",0,1]`: ErrTooMany,
		`{"a":1}{}`:               ErrTrailing,
		`{"a":1`:                  ErrSyntax,
		`{"a" 1}`:                 ErrSyntax,
		`}`:                       ErrSyntax,
		``:                        ErrSyntax,
		"\"\xff\"":                ErrUTF8,
		`{"a":{"b":1},"b":2}`:     nil,
	} {
		if _, _, err := limits.Parse([]byte(input)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", input, err, want)
		}
	}
}

func TestStrictFindsRepeatedNames(t *testing.T) {
	for input, name := range map[string]string{
		`{"a":1,"b":2,"a":3}`:       "a",
		`{"a":1,"\u0061":2}`:        "a",
		`{"o":{"x":1,"x":[]}}`:      "x",
		`[{"y":1},{"z":1,"z":"y"}]`: "z",
	} {
		var repeated *RepeatedError
		_, _, err := Strict{MaxDepth: 9, MaxValues: 99}.Parse([]byte(input))
		if !errors.As(err, &repeated) || repeated.Name != name {
			t.Errorf("%s: %v", input, err)
		}
	}
}

// The cost of hostile input is in its bytes, not in what its values would be as maps.
func TestStrictNeedsNoMemoryForValues(t *testing.T) {
	input := []byte(`{"username":[` + strings.Repeat(`{"":0},`, 2000) + `0]}`)
	allocated := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := (Strict{MaxDepth: 9, MaxValues: 10_000}).Parse(input); err != nil {
				b.Fatal(err)
			}
		}
	})
	if got := allocated.AllocedBytesPerOp(); got > 1024 {
		t.Errorf("%d bytes allocated for %d bytes of input", got, len(input))
	}
}

func FuzzStrict(f *testing.F) {
	for _, seed := range []string{`{"a":[1,{"b":null}]}`, `{"a":1,"a":2}`, `{"a":1}x`, `[]`, ``, `{"a":tru}`,
		`{"a":"\ud800"}`} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, input []byte) {
		v, values, err := Strict{MaxDepth: 20, MaxValues: 1000}.Parse(input)
		if err != nil {
			return
		}

		if !json.Valid(v) || values < 1 {
			t.Fatalf("took %q as %d values", input, values)
		}
	})
}
