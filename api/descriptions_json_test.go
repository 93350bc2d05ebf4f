package api

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	yaml "go.yaml.in/yaml/v3"
)

func TestDescriptionsAsJSON(t *testing.T) {
	e := newEnv(t)
	for _, name := range []string{"openapi", "asyncapi"} {
		w := e.ask(200, "GET", "/"+name+".json", nil, "", nil)
		if got := w.Header().Get("Content-Type"); got != "application/json" {
			t.Errorf("%s: %s", name, got)
		}

		var got any
		must(t, json.Unmarshal(w.Body.Bytes(), &got))

		// What YAML decodes to, through JSON, has to be the same.
		text, err := descriptions.ReadFile(name + ".yaml")
		must(t, err)
		var doc any
		must(t, yaml.Unmarshal(text, &doc))
		again, err := json.Marshal(doc)
		must(t, err)
		var want any
		must(t, json.Unmarshal(again, &want))

		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s.json is something else than %s.yaml", name, name)
		}
	}
}

func TestJSONOfYAMLKeepsTheOrder(t *testing.T) {
	got, err := yamlToJSON([]byte("z: 1\na: &x [true, null, 1.5, '1', \"a\\nb\"]\n'200': *x\nn: {}\n"))
	must(t, err)
	if want := `{"z":1,"a":[true,null,1.5,"1","a\nb"],"200":[true,null,1.5,"1","a\nb"],"n":{}}`; string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestJSONOfYAMLRefusesWhatJSONHasNot(t *testing.T) {
	for text, why := range map[string]string{
		"a: &x {b: 1}\nc:\n  <<: *x\n": "merge key",
		"a: .nan":                      "NaN",
		"a: [":                         "did not find",
	} {
		if _, err := yamlToJSON([]byte(text)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
