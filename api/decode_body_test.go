package api

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// What each malformed body is answered, on every endpoint that takes one.
func TestBadBodies(t *testing.T) {
	type answer struct {
		status  int
		message string
		fields  string // field:code, …
	}

	const syntax = "The body is not JSON"
	e, good := newEnv(t), loginBody("alice")
	for _, tc := range []struct {
		name, contentType, body string
		want                    answer
	}{
		{"empty", "", "", answer{400, syntax, ""}},
		{"cut off", "", good[:20], answer{400, syntax, ""}},
		{"trailing comma", "", good[:len(good)-1] + ",}", answer{400, syntax, ""}},
		{"single quotes", "", strings.ReplaceAll(good, `"`, `'`), answer{400, syntax, ""}},
		{"something after it", "", good + "{}", answer{400, "The body has data after the JSON value", ""}},
		{"invalid UTF-8", "", strings.Replace(good, "alice", "al\xffce", 1),
			answer{400, "The body is not valid UTF-8", ""}},
		{"an array", "", "[]", answer{400, "The body must be a JSON object", ""}},
		{"null", "", "null", answer{400, "The body must be a JSON object", ""}},
		{"too deep", "", `{"username":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "}",
			answer{400, "The body is nested more than 8 deep", ""}},
		{"as deep as may be", "",
			`{"username":` + strings.Repeat("[", 7) + strings.Repeat("]", 7) + `,"password":"p","domain":"d"}`,
			answer{400, invalidBody, "username:wrong_type"}},
		{"far too deep", "", strings.Repeat(`{"a":`, 3000), answer{400, "The body is nested more than 8 deep", ""}},
		{"too many values", "", `{"username":[` + strings.Repeat("0,", 3000) + "0]}",
			answer{400, "The body has more than 2048 values", ""}},
		{"over 16 KiB", "", `{"username":"` + strings.Repeat("x", 16<<10) + `"}`,
			answer{413, "The body is over 16 KiB", ""}},
		{"10 MB", "", strings.Repeat(" ", 10_000_000), answer{413, "The body is over 16 KiB", ""}},
		{"a form", "application/x-www-form-urlencoded", "username=alice",
			answer{415, "The Content-Type must be application/json", ""}},
		{"text", "text/plain", good, answer{415, "The Content-Type must be application/json", ""}},
		{"broken type", "application/json; =", good, answer{415, "The Content-Type must be application/json", ""}},
		{"another charset", "application/json; charset=utf-16", good,
			answer{415, "The Content-Type must be application/json", ""}},

		{"nothing there", "", "{}", answer{400, invalidBody, "username:required,password:required"}},
		{"empty strings", "", `{"username":"","password":"p","domain":""}`,
			answer{400, invalidBody, "username:required,domain:required"}},
		{"null members", "", `{"username":null,"password":"p","domain":null}`,
			answer{400, invalidBody, "username:required"}},
		{"no domain, and no user", "", `{"username":"nobody","password":"p"}`,
			answer{401, "Wrong username, password or domain", ""}},
		{"wrong types", "application/json", `{"username":1,"password":true,"domain":["d"]}`,
			answer{400, invalidBody, "username:wrong_type,password:wrong_type,domain:wrong_type"}},
		{"unknown members", "", `{"username":"u","password":"p","domain":"d","b":1,"a\r\nX: 1":{}}`,
			answer{400, invalidBody, "a\r\nX: 1:unknown,b:unknown"}},
		{"a repeated member", "", `{"username":"u","username":"v","password":"p","domain":"d"}`,
			answer{400, invalidBody, "username:repeated"}},
		{"another case is another member", "", `{"Username":"u","password":"p","domain":"d"}`,
			answer{400, invalidBody, "username:required,Username:unknown"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, path := range []string{"/ucp/v2/login", channelPrefix + "/login", channelWSPrefix + "/login"} {
				h := header{}
				if tc.contentType != "" {
					h["Content-Type"] = tc.contentType
				}

				w := e.do("POST", path, h, tc.body)
				var got failure
				must(t, json.Unmarshal(w.Body.Bytes(), &got))
				var fields []string

				for _, f := range got.Errors {
					fields = append(fields, f.Field+":"+f.Code)
				}

				if a := (answer{w.Code, got.Message, strings.Join(fields, ",")}); !reflect.DeepEqual(a, tc.want) {
					t.Errorf("%s: got %+v\nwant %+v", path, a, tc.want)
				}
			}
		})
	}

	e.ask(415, "POST", "/ucp/v2/login", header{"Content-Encoding": "gzip"}, good, nil)
	e.ask(200, "POST", "/ucp/v2/login", header{"Content-Type": "application/json; charset=UTF-8"}, good, nil)
	e.ask(400, "POST", "/ucp/v2/login/refresh", nil, `{"refresh_token":7}`, nil)
}
