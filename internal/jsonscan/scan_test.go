package jsonscan

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestScanKeepsTheValuesAskedFor(t *testing.T) {
	keys := KeysOf("a", "b\n", "c")
	keys["C"] = 2
	into := make([]Value, 3)
	in := ` {"x":[1,{"a":0}],"a":"1","\u0062\n": {"q" : [ ]} ,"a":"\ud83d\ude00\"\ud800x", "C":-1.5e+3}`
	if err := keys.Scan([]byte(in), into); err != nil {
		t.Fatal(err)
	}
	if text, ok := into[0].Text(); !ok || string(text) != "😀\"\ufffdx" {
		t.Errorf("of a repeated key the last counts, decoded: got %q", text)
	}
	if string(into[1]) != `{"q" : [ ]}` {
		t.Errorf("an escaped key is found: got %q", into[1])
	}

	if string(into[2]) != "-1.5e+3" || into[2].Kind() != Number {
		t.Errorf("a second spelling shares the slot: got %q", into[2])
	}
}

func TestScanKeepsTheLastElement(t *testing.T) {
	keys := Keys{"a": LastElement, "b": 1}
	for in, want := range map[string]string{
		`{"a":[ 1 , {"x":[2]} ] ,"b":[3]}`: `{"x":[2]}`, `{"a":[]}`: "", `{"a":[ ],"b":1}`: "",
		`{"a":"text"}`:        `"text"`,
		`{"a":[1],"a":[2,3]}`: "3", `{"a":[1],"a":[]}`: "", `{"a":{"x":1}}`: `{"x":1}`, `{}`: "",
	} {
		into := make([]Value, 2)
		if err := keys.Scan([]byte(in), into); err != nil || string(into[0]) != want {
			t.Errorf("of %s: got %q, %v, want %q", in, into[0], err, want)
		}
	}

	for _, in := range []string{`{"a":[1`, `{"a":[1,`, `{"a":[1,]}`, `{"a":[,1]}`, `{"a":[1}`, `{"a":[`,
		`{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`} {
		if err := keys.Scan([]byte(in), make([]Value, 2)); err == nil {
			t.Errorf("takes %.40s", in)
		}
	}

	if err := keys.Scan([]byte(`{"a":`+strings.Repeat("[", 99)+strings.Repeat("]", 99)+`}`),
		make([]Value, 2)); err != nil {
		t.Errorf("100 levels: %v", err)
	}
}

func TestScanRefuses(t *testing.T) {
	deep := func(n int) string { return `{"a":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + "}" }
	for _, c := range []struct {
		name, in string
		want     error
	}{
		{"nothing", "", ErrSyntax},
		{"an array", ` [{"a":1}] `, ErrNotObject},
		{"null", "null", ErrNotObject},
		{"two values", `{} {}`, ErrSyntax},
		{"two values, the first no object", `1 {}`, ErrSyntax},
		{"a bad UTF-8 byte in a string", "{\"a\":\"\xff\"}", ErrUTF8},
		{"half a UTF-8 sequence in a key", "{\"\xc3\":1}", ErrUTF8},
		{"100 levels", deep(100), nil},
		{"101 levels", deep(101), ErrDepth},
		{"101 levels before a syntax error", strings.Repeat(`{"a":`, 101), ErrDepth},
		{"100 levels left open", strings.Repeat(`{"a":`, 100), ErrSyntax},
		{"a leading zero", `{"a":01}`, ErrSyntax},
		{"a control character in a string", "{\"a\":\"12345678\n\"}", ErrSyntax},
		{"a short \\u", `{"a":"\u12"}`, ErrSyntax},
		{"a trailing comma", `{"a":1,}`, ErrSyntax},
		{"no key", `{:1}`, ErrSyntax},
		{"a byte order mark", "\ufeff{}", ErrSyntax},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := KeysOf("a").Scan([]byte(c.in), make([]Value, 1)); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// depth returns the nesting depth of b, which is valid JSON.
func depth(b []byte) (deepest int) {
	var now int
	dec := json.NewDecoder(strings.NewReader(string(b)))
	for {
		tok, err := dec.Token()
		if err != nil {
			return deepest
		}

		switch tok {
		case json.Delim('{'), json.Delim('['):
			now++
			deepest = max(deepest, now)
		case json.Delim('}'), json.Delim(']'):
			now--
		}
	}
}

func FuzzScanAgreesWithEncodingJSON(f *testing.F) {
	for _, seed := range []string{
		`{"a":"1","b":[1,2,{"c":null}],"n":-0.5e7,"t":true}`, `{"\u0061":"\ud83d\ude00\ud800"}`,
		`{"a":{},"a":[]}`, `[]`, `{"a":"` + strings.Repeat("é", 20) + `"}`, `{"":""}`, " {\t}\r\n",
	} {
		f.Add([]byte(seed), "a")
	}

	f.Fuzz(func(t *testing.T, in []byte, key string) {
		into := make([]Value, 1)
		err := KeysOf(key).Scan(in, into)
		valid := json.Valid(in)
		var want map[string]json.RawMessage
		object := valid && json.Unmarshal(in, &want) == nil && want != nil
		if ok := object && utf8.Valid(in) && depth(in) <= MaxDepth; ok != (err == nil) {
			t.Fatalf("valid: %v, object: %v, but Scan says %v", valid, object, err)
		}
		if err != nil {
			return
		}

		last := make([]Value, 1)
		if err := (Keys{key: LastElement}).Scan(in, last); err != nil {
			t.Fatal(err)
		}

		raw, present := want[key]
		if elements := []json.RawMessage(nil); len(raw) > 0 && raw[0] == '[' {
			if err := json.Unmarshal(raw, &elements); err != nil {
				t.Fatal(err)
			}
			if n := len(elements); n == 0 && last[0] != nil || n > 0 && string(elements[n-1]) != string(last[0]) {
				t.Fatalf("the last element of %q is %q", raw, last[0])
			}
		} else if string(last[0]) != string(raw) {
			t.Fatalf("got %q, want %q", last[0], raw)
		}

		if string(raw) != string(into[0]) || present != (into[0] != nil) {
			t.Fatalf("got %q, want %q", into[0], raw)
		}

		var text string
		if into[0].Kind() == String {
			if err := json.Unmarshal(raw, &text); err != nil {
				t.Fatal(err)
			}
			if got, _ := into[0].Text(); string(got) != text {
				t.Fatalf("decoded to %q, want %q", got, text)
			}
		}

		each := make(map[string]string)
		Value(strings.TrimSpace(string(in))).Each(func(k []byte, v Value) { each[string(k)] = string(v) })
		if len(each) != len(want) || each[key] != string(raw) {
			t.Fatalf("Each found %d members, want %d", len(each), len(want))
		}
	})
}

func BenchmarkScan1KB(b *testing.B) {
	in := []byte(`{"Account-ID":"demo","Type":"x","list":[` +
		strings.Repeat(`{"Some-Key":"some value of a field","n":12345},`, 20) + `1]}`)
	keys := KeysOf("Account-ID", "Type", "Queue-ID")
	into := make([]Value, 3)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()

	for b.Loop() {
		if err := keys.Scan(in, into); err != nil {
			b.Fatal(err)
		}
	}
}

func TestScanAtSaysWhereAndWhy(t *testing.T) {
	for in, want := range map[string]struct {
		at     int
		reason string
	}{
		`{"a":1} {`:         {7, ""},
		`{"a":1`:            {6, "the JSON ends early"},
		`{"a" 1}`:           {5, "a colon is missing"},
		`{"a":1,}`:          {7, "a member's name is missing"},
		`{"a":[1 2]}`:       {8, "a comma is missing"},
		`{"a":01}`:          {6, "a comma is missing"},
		`{"a":{"b":tru}}`:   {10, "not a JSON value"},
		`{"a":"x\y"}`:       {7, "a string has an unknown escape"},
		"{\"a\":\"x\ny\"}":  {7, "a string has a control character"},
		`{"b":1.}`:          {7, "a number has no digits after its point"},
		`{"b":[1e+]}`:       {9, "a number has no digits in its exponent"},
		`{"a":[{"b":nul}]}`: {11, "not a JSON value"},
	} {
		end, err := Keys{"a": LastElement}.ScanAt([]byte(in), 0, make([]Value, 1))
		var syntax *SyntaxError
		var reason string
		if errors.As(err, &syntax) {
			reason = syntax.Reason
		}
		if end != want.at || reason != want.reason || (err != nil) != errors.Is(err, ErrSyntax) {
			t.Errorf("%s: %d, %q (%v), want %d, %q", in, end, reason, err, want.at, want.reason)
		}
	}

	end, err := Keys(nil).ScanAt([]byte(strings.Repeat(`{"a":`, 101)), 0, nil)
	if end != 500 || !errors.Is(err, ErrDepth) {
		t.Errorf("too deep: %d, %v", end, err)
	}
}
