package split

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

// collect runs a splitter and returns the records, or the message of its fault.
func collect(split Splitter, body string) (records []string, fault string) {
	err := split([]byte(body), Sink{Take: func(record []byte, at int) error {
		records = append(records, string(record))
		return nil
	}})
	if err != nil {
		return nil, WithLine(err, []byte(body)).Error()
	}
	return records, ""
}

// nested returns objects, each within another.
func nested(depth int) string {
	return strings.Repeat(`{"a":`, depth-1) + "{}" + strings.Repeat("}", depth-1)
}

func TestJSON(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		want       []string
		fault      string
	}{
		{"one object", `{"a":1}`, []string{`{"a":1}`}, ""},
		{"white space around stays outside", " \n{ \"a\" : [1 , 2e-3] }\t\r\n", []string{`{ "a" : [1 , 2e-3] }`}, ""},
		{"array elements byte for byte", `[ {"b":2, "a":"\u00e9é\/"} ,{}]`, []string{`{"b":2, "a":"\u00e9é\/"}`, `{}`},
			""},
		{"empty array", ` [ ] `, nil, ""},
		{"every kind of value", `{"a":[true,false,null,0,-0.5E+7,"\"\\\b\f\n\r\t"],"":{}}`,
			[]string{`{"a":[true,false,null,0,-0.5E+7,"\"\\\b\f\n\r\t"],"":{}}`}, ""},
		{"as deep as allowed", "[" + nested(MaxDepth) + "]", []string{nested(MaxDepth)}, ""},

		{"empty", "", nil, "Line 1: the body is empty"},
		{"only space", " \n\n", nil, "Line 3: the body is empty"},
		{"not an object", `"a"`, nil, "Line 1: a record must be a JSON object"},
		{"array of arrays", "[{},\n[]]", nil, "Line 2: a record must be a JSON object"},
		{"null element", "[{},\n\nnull]", nil, "Line 3: a record must be a JSON object"},
		{"trailing comma in array", "[{},]", nil, "Line 1: not a JSON value"},
		{"trailing comma in object", `{"a":1,}`, nil, "Line 1: a member's name is missing"},
		{"two values", "{}\n{}", nil, "Line 2: something follows the JSON value"},
		{"cut off", "{\"a\":1,\n\"b\"", nil, "Line 2: the JSON ends early"},
		{"cut off in a string", "{\"a\":\n\"b", nil, "Line 2: the JSON ends early"},
		{"cut off in an array", "[{}\n", nil, "Line 2: the JSON ends early"},
		{"cut off after a comma", "[{},\n", nil, "Line 2: the JSON ends early"},
		{"a zero byte", "\x00{}", nil, "Line 1: not a JSON value"},
		{"missing colon", `{"a" 1}`, nil, "Line 1: a colon is missing"},
		{"missing comma", `{"a":1 "b":2}`, nil, "Line 1: a comma is missing"},
		{"leading zero", `{"a":01}`, nil, "Line 1: a comma is missing"},
		{"bare minus", `{"a":-}`, nil, "Line 1: not a JSON value"},
		{"point without digits", `{"a":1.}`, nil, "Line 1: a number has no digits after its point"},
		{"exponent without digits", `{"a":1e+}`, nil, "Line 1: a number has no digits in its exponent"},
		{"unknown word", `{"a":nul}`, nil, "Line 1: not a JSON value"},
		{"unknown escape", `{"a":"\x"}`, nil, "Line 1: a string has an unknown escape"},
		{"short \\u", `{"a":"\u12g4"}`, nil, "Line 1: a string has an unknown escape"},
		{"raw control character", "{\"a\":\"\n\"}", nil, "Line 1: a string has a control character"},
		{"invalid UTF-8", "{\"a\":\n\"\xff\"}", nil, "Line 2: not valid UTF-8"},
		{"one level too deep", nested(MaxDepth + 1), nil, "Line 1: nested too deeply"},
		{"arrays too deep", `{"a":` + strings.Repeat("[", 200), nil, "Line 1: nested too deeply"},
		{"byte order mark", "\ufeff{}", nil, "Line 1: not a JSON value"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, fault := collect(JSON, tc.body)
			if !slices.Equal(got, tc.want) || fault != tc.fault {
				t.Errorf("got %q, fault %q; want %q, fault %q", got, fault, tc.want, tc.fault)
			}
		})
	}
}

func TestNDJSON(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		want       []string
		fault      string
	}{
		{"lines", "{\"a\":1}\n{\"b\":2}\n", []string{`{"a":1}`, `{"b":2}`}, ""},
		{"last line without its end", "{}\n{}", []string{`{}`, `{}`}, ""},
		{"CRLF and blank lines", "\r\n {} \r\n\n \t\r\n{}\r\n", []string{`{}`, `{}`}, ""},
		{"empty", "", nil, ""},
		{"only blank lines", "\n\r\n", nil, ""},

		{"names the line", "{}\n\n{\"a\":}\n{}", nil, "Line 3: not a JSON value"},
		{"an object over two lines", "{\"a\":\n1}", nil, "Line 1: the JSON ends early"},
		{"two on a line", "{}\n{} {}", nil, "Line 2: something follows the JSON object"},
		{"an array", "{}\n[{}]", nil, "Line 2: a record must be a JSON object"},
		{"invalid UTF-8", "{}\n{}\n\x80", nil, "Line 3: not valid UTF-8"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, fault := collect(NDJSON, tc.body)
			if !slices.Equal(got, tc.want) || fault != tc.fault {
				t.Errorf("got %q, fault %q; want %q, fault %q", got, fault, tc.want, tc.fault)
			}
		})
	}
}

// FuzzJSON compares the scanner with encoding/json: accepted input is valid JSON, and
// rejected input, apart from nesting and UTF-8, is not.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,-2.5e3,"\u00e9",null,true]}`, `[{},{"a":{}}]`, `[{]`, `{"a":01}`,
		"{\"a\":\"\x00\"}", "", "[", nested(101)} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, body []byte) {
		var records [][]byte
		err := JSON(body, Sink{Take: func(record []byte, at int) error {
			if !json.Valid(record) || record[0] != '{' || !bytes.Equal(record, body[at:at+len(record)]) {
				t.Fatalf("emitted %q", record)
			}
			records = append(records, record)
			return nil
		}})

		var split *Error
		if err != nil && (!errors.As(err, &split) || split.offset > len(body)) {
			t.Fatalf("error %v", err)
		}
		if err == nil && !json.Valid(body) {
			t.Fatalf("took %q", body)
		}
		if err != nil && json.Valid(body) && split.reason != "nested too deeply" &&
			split.reason != "not valid UTF-8" && split.reason != "a record must be a JSON object" {
			t.Fatalf("refused %q: %v", body, err)
		}
	})
}

func FuzzNDJSON(f *testing.F) {
	f.Add([]byte("{}\n{\"a\":1}\r\n\n"))
	f.Add([]byte("{}\n{"))
	f.Fuzz(func(t *testing.T, body []byte) {
		records := 0
		err := NDJSON(body, Sink{Take: func(record []byte, _ int) error {
			if !json.Valid(record) || bytes.ContainsRune(record, '\n') {
				t.Fatalf("emitted %q", record)
			}
			records++
			return nil
		}})
		if lines := 1 + bytes.Count(body, []byte("\n")); err == nil && records > lines {
			t.Fatalf("%d records from %d lines", records, lines)
		}
	})
}
