package freeswitch

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"trunkline/format/split"
)

// collect runs a splitter and returns the records, or the message of its fault.
func collect(splitter split.Splitter, body string) (records []string, fault string) {
	err := splitter([]byte(body), split.Sink{Take: func(record []byte, at int) error {
		records = append(records, string(record))
		return nil
	}})
	if err != nil {
		return nil, split.WithLine(err, []byte(body)).Error()
	}
	return records, ""
}

func TestSplitForm(t *testing.T) {
	const cdr = `{"variables":{"uuid":"a?b>c"},"n":"é + 1"}`
	for _, tc := range []struct {
		name  string
		body  string
		want  []string
		fault string
	}{
		{"urlencoded", `cdr=%7B%22variables%22%3A%7B%22uuid%22%3A%22a%3Fb%3Ec%22%7D,%22n%22:%22%C3%A9%20%2B+1%22%7D`,
			[]string{cdr}, ""},
		{"other fields beside it", `a=1&cdr=%7b%7d&b`, []string{`{}`}, ""},
		{"base64", `cdr=eyJ2YXJpYWJsZXMiOnsidXVpZCI6ImE/Yj5jIn0sIm4iOiLDqSArIDEifQ==`, []string{cdr}, ""},
		{"base64, padding lost", `cdr=eyJ2YXJpYWJsZXMiOnsidXVpZCI6ImE/Yj5jIn0sIm4iOiLDqSArIDEifQ`, []string{cdr}, ""},
		{"base64, percent-encoded", `cdr=eyJ2YXJpYWJsZXMiOnsidXVpZCI6ImE%2FYj5jIn0sIm4iOiLDqSArIDEifQ%3D%3D`,
			[]string{cdr}, ""},
		{"base64, its + turned into a space", `cdr=eyJhIjoi8J+YgD4 In0=`, []string{`{"a":"😀>>"}`}, ""},
		{"JSON, as disable-100-continue sends it", " {\"a\":\"50%25&cdr=x\"}\n", []string{`{"a":"50%25&cdr=x"}`}, ""},
		{"a file of err-log-dir after cdr=", "cdr=%7B%7D\n", []string{`{}`}, ""},
		{"a base64 file of err-log-dir after cdr=", "cdr=e30=\n", []string{`{}`}, ""},

		{"no cdr", `xcdr=%7B%7D`, nil, "Line 1: the field cdr is missing"},
		{"empty", ``, nil, "Line 1: the field cdr is missing"},
		{"two", `cdr=%7B%7D&cdr=%7B%7D`, nil, "Line 1: the form has more than one field cdr"},
		{"broken escape", `cdr=%7`, nil, "Line 1: the field cdr is neither URL-encoded nor base64-encoded JSON"},
		{"broken base64", `cdr=e$JhIjoi`, nil, "Line 1: the field cdr is neither URL-encoded nor base64-encoded JSON"},
		{"the line in the JSON text", `cdr=%7B%0A%22a%22%7D`, nil, "Line 2: a colon is missing"},
		{"a name that is not UTF-8", `cdr=%7B%22%ff%22:1%7D`, []string{"{\"\uFFFD\":1}"}, ""},
		{"base64 of text that is not UTF-8", "cdr=" + base64.StdEncoding.EncodeToString([]byte("{\"a\":\"\xe9\"}")),
			[]string{"{\"a\":\"\uFFFD\"}"}, ""},
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

// switchEscape URL-encodes like FreeSWITCH: it does not encode URL-encoded parts
// again.
func switchEscape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		encoded := i+2 < len(s) && strings.IndexByte("0123456789ABCDEF", s[i+1]) >= 0 &&
			strings.IndexByte("0123456789ABCDEF", s[i+2]) >= 0
		if c := s[i]; c <= ' ' || c > '~' || strings.IndexByte("#&+:;<=>?@[\\]^`{|}\"", c) >= 0 ||
			c == '%' && !encoded {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}

	return b.String()
}

// With encode=true and encode-values=true a value is URL-encoded once, although
// the text around it is URL-encoded after it: see switchEscape.
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
				"callflow": []any{map[string]string{"chan_name": `loopback/"x"`},
					map[string]string{"dialplan": "XML"}},
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

			if record.Variables["uuid"] != "u1" || record.Variables["a"] != "1" || len(record.Variables) != 4 ||
				len(record.Callflow) != 2 {
				t.Errorf("record %+v", record)
			}
		})
	}
}

// Bodies captured from mod_json_cdr with encode=true, as it posts them.
func TestSplitCapturedForms(t *testing.T) {
	for file, want := range map[string]map[string]string{
		"encode-true-1.form": {"uuid": "41f7692b-77a3-454f-a541-e72f4cb3be77", "caller_id": `"1001" <1001>`,
			"channel_name": "loopback/+4930555000-b"},
		"encode-true-2.form": {"uuid": "7fb01202-d5b5-4421-9586-0645c3920f7a",
			"sip_full_from":  `"Click to call" <sip:+4930555000@127.0.0.20>;tag=tyQ40ySXNZDep`,
			"sip_user_agent": "baresip v1.0.0 (x86_64/linux)"},
	} {
		t.Run(file, func(t *testing.T) {
			captured, err := os.ReadFile("testdata/json_cdr_bodies/" + file)
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

func FuzzSplitForm(f *testing.F) {
	f.Add([]byte("cdr=%7B%22a%22%3A1%7D"))
	f.Add([]byte("x=1&cdr=eyJhIjoi8J+YgD4 In0="))
	f.Add([]byte(`{"a":1}`))
	f.Add([]byte("cdr=%7B%22a%22%3A%7B%22b%22%3A%22%221001%22%20<x>%0D%0A%5C%22,%22c%22%3A%22%22%7D,%22d%22%3A%5B%7B%22e%22:%22%E9%22%7D,%7B%7D%5D%7D"))

	f.Fuzz(func(t *testing.T, body []byte) {
		err := splitForm(body, split.Sink{Take: func(record []byte, _ int) error {
			if !json.Valid(record) {
				t.Fatalf("emitted %q", record)
			}
			return nil
		}})
		if err != nil && split.WithLine(err, body).Error() == "" {
			t.Fatal("a fault without words")
		}
	})
}

// FuzzEncodedValue checks that the repair of a value restores it, unless it looks like
// the next member.
func FuzzEncodedValue(f *testing.F) {
	f.Add("\"1001\" <1001>")
	f.Add("v=0\r\n")
	f.Add("\\\"\x00\xff%")

	f.Fuzz(func(t *testing.T, value string) {
		if escaped := switchEscape(value); escaped == value || strings.ContainsAny(value, `%\`) ||
			strings.Contains(value, `",`) || strings.Contains(value, `"}`) || strings.Contains(value, `"]`) {
			t.Skip("FreeSWITCH's encoding does not tell")
		}

		got, fault := collect(splitForm,
			"cdr="+switchEscape(`{"variables":{"it":"`+switchEscape(value)+`","uuid":"u1"}}`))
		if fault != "" || len(got) != 1 {
			t.Fatalf("fault %q", fault)
		}

		var record struct{ Variables map[string]string }
		if err := json.Unmarshal([]byte(got[0]), &record); err != nil {
			t.Fatal(err)
		}
		if decoded, err := url.PathUnescape(record.Variables["it"]); err != nil || decoded != value ||
			record.Variables["uuid"] != "u1" {
			t.Errorf("%q came as %q", value, got[0])
		}
	})
}
