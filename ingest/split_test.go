package ingest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
)

// collect runs a splitter and answers the records, or the message of its fault.
func collect(split splitter, body string) (records []string, fault string) {
	err := split([]byte(body), func(record []byte, at int) error {
		records = append(records, string(record))
		return nil
	})
	if err != nil {
		return nil, withLine(err, []byte(body)).Error()
	}
	return records, ""
}

func nested(depth int) string {
	return strings.Repeat(`{"a":`, depth-1) + "{}" + strings.Repeat("}", depth-1)
}

func TestSplitJSON(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		want       []string
		fault      string
	}{
		{"one object", `{"a":1}`, []string{`{"a":1}`}, ""},
		{"white space around stays outside", " \n{ \"a\" : [1 , 2e-3] }\t\r\n", []string{`{ "a" : [1 , 2e-3] }`}, ""},
		{"array elements byte for byte", `[ {"b":2, "a":"\u00e9é\/"} ,{}]`, []string{`{"b":2, "a":"\u00e9é\/"}`, `{}`}, ""},
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
			got, fault := collect(splitJSON, tc.body)
			if !slices.Equal(got, tc.want) || fault != tc.fault {
				t.Errorf("got %q, fault %q; want %q, fault %q", got, fault, tc.want, tc.fault)
			}
		})
	}
}

func TestSplitNDJSON(t *testing.T) {
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
			got, fault := collect(splitNDJSON, tc.body)
			if !slices.Equal(got, tc.want) || fault != tc.fault {
				t.Errorf("got %q, fault %q; want %q, fault %q", got, fault, tc.want, tc.fault)
			}
		})
	}
}

func TestSplitForm(t *testing.T) {
	const cdr = `{"variables":{"uuid":"a?b>c"},"n":"é + 1"}`
	for _, tc := range []struct {
		name  string
		body  string
		want  []string
		fault string
	}{
		{"urlencoded", `cdr=%7B%22variables%22%3A%7B%22uuid%22%3A%22a%3Fb%3Ec%22%7D,%22n%22:%22%C3%A9%20%2B+1%22%7D`, []string{cdr}, ""},
		{"other fields beside it", `a=1&cdr=%7b%7d&b`, []string{`{}`}, ""},
		{"base64", `cdr=eyJ2YXJpYWJsZXMiOnsidXVpZCI6ImE/Yj5jIn0sIm4iOiLDqSArIDEifQ==`, []string{cdr}, ""},
		{"base64, padding lost", `cdr=eyJ2YXJpYWJsZXMiOnsidXVpZCI6ImE/Yj5jIn0sIm4iOiLDqSArIDEifQ`, []string{cdr}, ""},
		{"base64, percent-encoded", `cdr=eyJ2YXJpYWJsZXMiOnsidXVpZCI6ImE%2FYj5jIn0sIm4iOiLDqSArIDEifQ%3D%3D`, []string{cdr}, ""},
		{"base64, its + turned into a space", `cdr=eyJhIjoi8J+YgD4 In0=`, []string{`{"a":"😀>>"}`}, ""},
		{"JSON, as disable-100-continue sends it", " {\"a\":\"50%25&cdr=x\"}\n", []string{`{"a":"50%25&cdr=x"}`}, ""},
		{"a file of err-log-dir after cdr=", "cdr=%7B%7D\n", []string{`{}`}, ""},
		{"a base64 file of err-log-dir after cdr=", "cdr=e30=\n", []string{`{}`}, ""},

		{"no cdr", `xcdr=%7B%7D`, nil, "Line 1: the field cdr is missing"},
		{"empty", ``, nil, "Line 1: the field cdr is missing"},
		{"two", `cdr=%7B%7D&cdr=%7B%7D`, nil, "Line 1: the field cdr is there twice"},
		{"broken escape", `cdr=%7`, nil, "Line 1: the field cdr is neither URL-encoded nor base64-encoded JSON"},
		{"broken base64", `cdr=e$JhIjoi`, nil, "Line 1: the field cdr is neither URL-encoded nor base64-encoded JSON"},
		{"the line in the JSON text", `cdr=%7B%0A%22a%22%7D`, nil, "Line 2: a colon is missing"},
		{"a name that is not UTF-8", `cdr=%7B%22%ff%22:1%7D`, nil, "Line 1: not valid UTF-8"},
		{"broken JSON", `{"a"`, nil, "Line 1: the JSON ends early"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, fault := collect(splitForm, tc.body)
			if !slices.Equal(got, tc.want) || fault != tc.fault {
				t.Errorf("got %q, fault %q; want %q, fault %q", got, fault, tc.want, tc.fault)
			}
		})
	}
}

// switchEscape URL-encodes as FreeSWITCH does: what is URL-encoded already is
// not encoded again.
func switchEscape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		encoded := i+2 < len(s) && strings.IndexByte("0123456789ABCDEF", s[i+1]) >= 0 && strings.IndexByte("0123456789ABCDEF", s[i+2]) >= 0
		if c := s[i]; c <= ' ' || c > '~' || strings.IndexByte("#&+:;<=>?@[\\]^`{|}\"", c) >= 0 || c == '%' && !encoded {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// With encode=true and encode-values=true a value is URL-encoded once, although
// the text around it is URL-encoded after it: see escapeBare.
func TestSplitFormWithEncodedValues(t *testing.T) {
	for name, value := range map[string]string{
		"quotes":               `"1001" <1001>`,
		"quotes only":          `""`,
		"quote at the end":     `say "hello"`,
		"a SIP header":         `"Click to call" <sip:+4930555000@127.0.0.20>;tag=tyQ40`,
		"a digest header":      `Digest username="1001", realm="pbx", nonce="8f", uri="sip:1002@pbx"`,
		"SDP":                  "v=0\r\no=FreeSWITCH 1795311683 1 IN IP4 127.0.0.20\r\na=rtpmap:0 PCMU/8000\r\n",
		"backslashes":          `C:\sounds\x "y"`,
		"a percent sign":       `50% "off"`,
		"Latin-1":              "Andr\xe9 \"x\"",
		"UTF-8":                `Grüße "😀"`,
		"a tab":                "a\tb",
		"a closing brace":      `"}`,
		"quote, comma":         `a", b`,
		"ends in a quote, two": `x""`,
	} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(map[string]any{
				"channel_data": map[string]string{"state": "CS_REPORTING"},
				"variables":    map[string]string{"a": "1", "it": switchEscape(value), "uuid": "u1", "z": ""},
				"callflow":     []any{map[string]string{"chan_name": `loopback/"x"`}, map[string]string{"dialplan": "XML"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			got, fault := collect(splitForm, "cdr="+switchEscape(string(text)))
			if fault != "" || len(got) != 1 {
				t.Fatalf("fault %q, records %q", fault, got)
			}
			var record struct {
				Variables map[string]string
				Callflow  []map[string]string
			}
			if err := json.Unmarshal([]byte(got[0]), &record); err != nil {
				t.Fatal(err)
			}
			// A value without anything to repair is decoded already.
			decoded, err := url.PathUnescape(record.Variables["it"])
			if err != nil || decoded != value && record.Variables["it"] != value {
				t.Errorf("value %q, in the record %q", value, record.Variables["it"])
			}
			if record.Variables["uuid"] != "u1" || record.Variables["a"] != "1" || len(record.Variables) != 4 || len(record.Callflow) != 2 {
				t.Errorf("record %+v", record)
			}
		})
	}
}

// Bodies captured from mod_json_cdr with encode=true, as it posts them.
func TestSplitCapturedForms(t *testing.T) {
	for file, want := range map[string]map[string]string{
		"encode-true-1.form": {"uuid": "41f7692b-77a3-454f-a541-e72f4cb3be77", "caller_id": `"1001" <1001>`, "channel_name": "loopback/+4930555000-b"},
		"encode-true-2.form": {"uuid": "7fb01202-d5b5-4421-9586-0645c3920f7a",
			"sip_full_from": `"Click to call" <sip:+4930555000@127.0.0.20>;tag=tyQ40ySXNZDep`, "sip_user_agent": "baresip v1.0.0 (x86_64/linux)"},
	} {
		t.Run(file, func(t *testing.T) {
			captured, err := os.ReadFile("testdata/json_cdr/" + file)
			if err != nil {
				t.Fatal(err)
			}
			got, fault := collect(splitForm, "cdr="+string(captured))
			if fault != "" || len(got) != 1 {
				t.Fatalf("fault %q, %d records", fault, len(got))
			}
			var record struct {
				Variables map[string]string
				Callflow  []struct {
					Times map[string]string
				}
			}
			if err := json.Unmarshal([]byte(got[0]), &record); err != nil {
				t.Fatal(err)
			}
			for name, value := range want {
				if decoded, err := url.PathUnescape(record.Variables[name]); err != nil || decoded != value {
					t.Errorf("%s is %q, %v", name, record.Variables[name], err)
				}
			}
			if len(record.Callflow) == 0 || record.Callflow[0].Times["hangup_time"] == "" {
				t.Errorf("callflow %v", record.Callflow)
			}
		})
	}
}

// FuzzSplitJSON holds the scanner to encoding/json: what it takes is JSON, and
// what it refuses, apart from nesting and UTF-8, is not.
func FuzzSplitJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,-2.5e3,"\u00e9",null,true]}`, `[{},{"a":{}}]`, `[{]`, `{"a":01}`, "{\"a\":\"\x00\"}", "", "[", nested(101)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var records [][]byte
		err := splitJSON(body, func(record []byte, at int) error {
			if !json.Valid(record) || record[0] != '{' || !bytes.Equal(record, body[at:at+len(record)]) {
				t.Fatalf("emitted %q", record)
			}
			records = append(records, record)
			return nil
		})
		var split *splitError
		if err != nil && (!errors.As(err, &split) || split.at > len(body)) {
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

func FuzzSplitNDJSON(f *testing.F) {
	f.Add([]byte("{}\n{\"a\":1}\r\n\n"))
	f.Add([]byte("{}\n{"))
	f.Fuzz(func(t *testing.T, body []byte) {
		records := 0
		err := splitNDJSON(body, func(record []byte, _ int) error {
			if !json.Valid(record) || bytes.ContainsRune(record, '\n') {
				t.Fatalf("emitted %q", record)
			}
			records++
			return nil
		})
		if lines := 1 + bytes.Count(body, []byte("\n")); err == nil && records > lines {
			t.Fatalf("%d records from %d lines", records, lines)
		}
	})
}

func FuzzSplitForm(f *testing.F) {
	f.Add([]byte("cdr=%7B%22a%22%3A1%7D"))
	f.Add([]byte("x=1&cdr=eyJhIjoi8J+YgD4 In0="))
	f.Add([]byte(`{"a":1}`))
	f.Add([]byte("cdr=%7B%22a%22%3A%7B%22b%22%3A%22%221001%22%20<x>%0D%0A%5C%22,%22c%22%3A%22%22%7D,%22d%22%3A%5B%7B%22e%22:%22%E9%22%7D,%7B%7D%5D%7D"))
	f.Fuzz(func(t *testing.T, body []byte) {
		err := splitForm(body, func(record []byte, _ int) error {
			if !json.Valid(record) {
				t.Fatalf("emitted %q", record)
			}
			return nil
		})
		if err != nil && withLine(err, body).Error() == "" {
			t.Fatal("a fault without words")
		}
	})
}

// FuzzEncodedValue holds the repair of a value to the value: whatever it is, as
// long as it does not look like the next member.
func FuzzEncodedValue(f *testing.F) {
	f.Add("\"1001\" <1001>")
	f.Add("v=0\r\n")
	f.Add("\\\"\x00\xff%")
	f.Fuzz(func(t *testing.T, value string) {
		if escaped := switchEscape(value); escaped == value || strings.ContainsAny(value, `%\`) || strings.Contains(value, `",`) || strings.Contains(value, `"}`) || strings.Contains(value, `"]`) {
			t.Skip("FreeSWITCH's encoding does not tell")
		}
		got, fault := collect(splitForm, "cdr="+switchEscape(`{"variables":{"it":"`+switchEscape(value)+`","uuid":"u1"}}`))
		if fault != "" || len(got) != 1 {
			t.Fatalf("fault %q", fault)
		}
		var record struct{ Variables map[string]string }
		if err := json.Unmarshal([]byte(got[0]), &record); err != nil {
			t.Fatal(err)
		}
		if decoded, err := url.PathUnescape(record.Variables["it"]); err != nil || decoded != value || record.Variables["uuid"] != "u1" {
			t.Errorf("%q came as %q", value, got[0])
		}
	})
}
