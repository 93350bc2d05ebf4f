package api

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"trunkline/internal/fault"
	"trunkline/internal/jsonscan"
)

func parseObject(t *testing.T, text string) *jsonObject {
	t.Helper()
	o, _, err := parse([]byte(text), callerLimits())
	must(t, err)
	return o
}

func TestObjectReadsEveryKind(t *testing.T) {
	o := parseObject(t, `{"s":"x","b":true,"n":-7,"l":["a","b"],"o":{"p":{"q":"deep"}}}`)
	if !o.Has("s") || o.Has("z") {
		t.Error("Has")
	}
	if s, b, n, l := o.String("s", required), o.memberOfKind("b", required, jsonscan.Bool,
		"a boolean") != nil, o.Int("n",
		required), o.Strings("l", required); s != "x" || !b || n != -7 || !reflect.DeepEqual(l, []string{"a", "b"}) {
		t.Error(s, b, n, l)
	}
	if q := o.Object("o", required).Object("p", required).String("q", required); q != "deep" {
		t.Error(q)
	}
	if o.String("absent", optional) != "" || o.Int("absent", optional) != 0 || o.Strings("absent", optional) != nil {
		t.Error("an absent member is the zero value")
	}

	if err := o.Err("m"); err != nil {
		t.Error(err)
	}
}

func TestObjectGathersEveryFault(t *testing.T) {
	o := parseObject(t,
		`{"b":"true","n":1.5,"huge":99999999999999999999,"l":{"a":1},"o":{"q":null,"extra":1},"p":[],"more":0}`)
	o.memberOfKind("b", required, jsonscan.Bool, "a boolean")
	o.Int("n", required)
	o.Int("huge", optional)
	o.Int("gone", required)
	o.Strings("l", optional)
	inner := o.Object("o", required)
	inner.String("q", required)
	inner.String("r", required)
	o.Object("p", optional).String("s", optional)
	f := fault.As(o.Err("in words"))
	var got []string

	for _, field := range f.Fields {
		got = append(got, field.Field+":"+field.Code)
	}

	want := []string{
		"b:wrong_type", "n:wrong_type", "huge:wrong_type", "gone:required", "l:wrong_type",
		"o.q:wrong_type", "o.r:required", "p:wrong_type", "more:unknown", "o.extra:unknown",
	}
	if f.Kind != fault.KindInvalid || f.Message != "in words" || !slices.Equal(got, want) {
		t.Errorf("%s %s\n got %v\nwant %v", f.Kind, f.Message, got, want)
	}
}

// FuzzParse holds the parser to encoding/json.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{"a":[1,{"b":null}]}`, `{"a":1,"a":2}`, `{"a":1}x`, `[]`, ``, `{"a":tru}`,
		strings.Repeat(`{"a":`, 101)} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, body []byte) {
		o, _, err := parse(body, callerLimits())
		if err != nil {
			if fault.KindOf(err) != fault.KindInvalid {
				t.Fatal(err)
			}
			return
		}

		var want map[string]any
		if err := json.Unmarshal(body, &want); err != nil {
			t.Fatalf("took %q: %v", body, err)
		}
		if members := o.RawMembers(); len(members) != len(want) {
			t.Fatalf("%q: %v", body, members)
		}
	})
}
