package api

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// queryOf returns the parameters in the query of an operation of openapi.yaml, and the token
// where it may be there.
func (d *description) queryOf(item, operation node) (names []string) {
	schemes, _ := d.at(d.root(), "components", "securitySchemes")
	add := func(of map[string]any) {
		if of["in"] == "query" {
			names = append(names, of["name"].(string))
		}
	}

	for _, of := range []node{item, operation} {
		parameters, _ := of.value["parameters"].([]any)
		for _, p := range parameters {
			n, _ := d.at(node{value: map[string]any{"parameter": p}}, "parameter")
			add(n.value)
		}
	}

	security, _ := operation.value["security"].([]any)
	for _, s := range security {
		for name := range s.(map[string]any) {
			add(schemes.value[name].(map[string]any))
		}
	}

	slices.Sort(names)
	return slices.Compact(names)
}

// Every operation of openapi.yaml takes the parameters that it describes, and refuses others.
func TestAnUnknownParameterIsRefusedEverywhere(t *testing.T) {
	e := newEnv(t)
	d := readDescription(t)
	declared := map[string][]string{}

	for _, r := range e.api.routes() {
		if !r.anyQuery {
			declared[r.method+" "+parameter.ReplaceAllString(r.path, "{$1}")] = slices.Sorted(slices.Values(r.query))
		}
	}

	paths, _ := d.at(d.root(), "paths")
	asked := 0
	for path := range paths.value {
		item, _ := d.at(paths, path)
		for method := range item.value {
			operation, ok := d.at(item, method)
			if !ok || path == "/auth/oidc/callback" {
				continue
			}

			name := strings.ToUpper(method) + " " + path
			if want, got := d.queryOf(item, operation), declared[name]; !slices.Equal(got, want) {
				t.Errorf("%s takes %v, described are %v", name, got, want)
			}

			target := regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(path, "x") + "?start_dat=1"
			answer := httptest.NewRecorder()
			e.api.ServeHTTP(answer, httptest.NewRequest(strings.ToUpper(method), target, nil))
			var f failure
			if err := json.Unmarshal(answer.Body.Bytes(), &f); answer.Code != http.StatusBadRequest || err != nil ||
				len(f.Errors) != 1 || f.Errors[0].Field != "start_dat" || !strings.Contains(f.Message, "start_dat") {
				t.Errorf("%s: %d %s", name, answer.Code, answer.Body)
			}

			asked++
		}
	}

	if asked < 60 {
		t.Errorf("only %d operations", asked)
	}
}

func TestQueriesThatAreKnownOrNone(t *testing.T) {
	e := newEnv(t)
	for target, want := range map[string]int{
		"/api/v2/cc_events_channel/health":         http.StatusOK,
		"/api/v2/cc_events_channel/health?":        http.StatusOK,
		"/api/v2/cc_events_channel/health?a=1&b=2": http.StatusBadRequest,
		"/api/v2/cc_events_channel/health?%zz":     http.StatusBadRequest,
		"/auth/oidc/callback?session_state=1":      http.StatusSeeOther, // what a provider adds
	} {
		answer := httptest.NewRecorder()
		e.api.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, target, nil))
		if answer.Code != want {
			t.Errorf("%s: %d %s, want %d", target, answer.Code, answer.Body, want)
		}
	}
}
