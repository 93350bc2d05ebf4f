package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	yaml "go.yaml.in/yaml/v3"
)

// description is openapi.yaml, as a judge of requests and answers.
type description struct {
	doc map[string]any

	mu       sync.Mutex
	compiler *jsonschema.Compiler // keeps what it has compiled
}

const descriptionURL = "https://trunkline.test/openapi.yaml"

// readDescription returns openapi.yaml, which is parsed once for all tests.
func readDescription(t testing.TB) *description {
	t.Helper()
	d, err := parsedDescription()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

var parsedDescription = sync.OnceValues(func() (*description, error) {
	doc, err := parseYAML("openapi.yaml")
	if err != nil {
		return nil, err
	}
	d := &description{doc: doc, compiler: jsonschema.NewCompiler()}
	return d, d.compiler.AddResource(descriptionURL, doc)
})

func readYAML(t testing.TB, name string) map[string]any {
	t.Helper()
	doc, err := parseYAML(name)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// parseYAML reads YAML as the JSON it stands for.
func parseYAML(name string) (map[string]any, error) {
	data, err := descriptions.ReadFile(name)
	if err != nil {
		return nil, err
	}

	var doc any
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, err
	}

	text, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}

	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}

	return value.(map[string]any), nil
}

// node is a place in the document, with the way to it.
type node struct {
	value map[string]any
	path  []string
}

// at goes down from n; a $ref on the way is followed. ok is false where the
// document has nothing.
func (d *description) at(n node, steps ...string) (node, bool) {
	for _, step := range steps {
		value, ok := n.value[step].(map[string]any)
		if !ok {
			return node{}, false
		}

		n = node{value, append(slices.Clip(n.path), step)}
		if ref, ok := value["$ref"].(string); ok {
			target, ok := strings.CutPrefix(ref, "#/")
			if !ok {
				return node{}, false
			}

			var way []string
			for part := range strings.SplitSeq(target, "/") {
				way = append(way, strings.NewReplacer("~1", "/", "~0", "~").Replace(part))
			}

			n, ok = d.at(node{value: d.doc}, way...)
			if !ok {
				return node{}, false
			}
		}
	}

	return n, true
}

func (d *description) root() node { return node{value: d.doc} }

// checkSchema holds value to the schema at n.
func (d *description) checkSchema(n node, value any) error {
	pointer := descriptionURL + "#"
	for _, step := range n.path {
		pointer += "/" + url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(step))
	}

	d.mu.Lock()
	schema, err := d.compiler.Compile(pointer)
	d.mu.Unlock()

	if err != nil {
		return err
	}

	return schema.Validate(value)
}

// pathItem is the path item of a request's path, literal paths first.
func (d *description) pathItem(path string) (node, bool) {
	paths, _ := d.at(d.root(), "paths")
	for _, literal := range []bool{true, false} {
		for template := range paths.value {
			if literal == !strings.Contains(template, "{") && pathMatches(template, path) {
				return d.at(paths, template)
			}
		}
	}
	return node{}, false
}

func pathMatches(template, path string) bool {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	return len(want) == len(got) && !slices.ContainsFunc(slices.Collect(indexes(want)), func(i int) bool {
		return want[i] != got[i] && (!strings.HasPrefix(want[i], "{") || got[i] == "")
	})
}

func indexes(s []string) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := range s {
			if !yield(i) {
				return
			}
		}
	}
}

// checked wraps a handler: every request that passes, and its answer, is held
// to the description.
func (d *description) checked(t testing.TB, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}

		r.Body = io.NopCloser(bytes.NewReader(body))
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r)

		if err := d.check(r, body, answer); err != nil {
			t.Errorf("%s %s answered %d, which openapi.yaml does not describe: %v", r.Method, r.URL.Path, answer.Code,
				err)
		}

		for name, values := range answer.Header() {
			w.Header()[name] = values
		}

		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	})
}

func (d *description) check(r *http.Request, body []byte, answer *httptest.ResponseRecorder) error {
	item, ok := d.pathItem(r.URL.EscapedPath())
	if !ok {
		return d.checkUnrouted(answer, http.StatusNotFound, "NotFound")
	}

	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}

	operation, ok := d.at(item, strings.ToLower(method))
	if !ok {
		return d.checkUnrouted(answer, http.StatusMethodNotAllowed, "MethodNotAllowed")
	}

	response, ok := d.at(operation, "responses", strconv.Itoa(answer.Code))
	if !ok {
		return fmt.Errorf("no such status")
	}

	if answer.Code < 300 {
		if err := d.checkRequest(operation, r, body); err != nil {
			return fmt.Errorf("the request was taken, but %w", err)
		}
	}

	return d.checkAnswer(response, answer)
}

func (d *description) checkUnrouted(answer *httptest.ResponseRecorder, status int, name string) error {
	if answer.Code != status {
		return fmt.Errorf("want %d", status)
	}
	response, ok := d.at(d.root(), "components", "responses", name)
	if !ok {
		return fmt.Errorf("no response %s", name)
	}
	return d.checkAnswer(response, answer)
}

func (d *description) checkRequest(operation node, r *http.Request, body []byte) error {
	content, ok := d.at(operation, "requestBody", "content")
	if !ok {
		if len(body) > 0 {
			return fmt.Errorf("it has a body")
		}
		return nil
	}

	if whole, _ := d.at(operation, "requestBody"); whole.value["required"] != true && len(body) == 0 {
		return nil
	}

	media, err := mediaOf(r.Header, "application/json")
	if err != nil {
		return err
	}

	schema, anyType, ok := d.schemaOf(content, media)
	if !ok {
		return fmt.Errorf("%s is no content", media)
	}
	if anyType || media != "application/json" || r.Header.Get("Content-Encoding") == "gzip" {
		return nil
	}

	return d.validateJSON(schema, body)
}

// schemaOf is what content of a media type is. Where any type is taken, no type
// means anything.
func (d *description) schemaOf(content node, media string) (schema node, anyType, ok bool) {
	if schema, ok := d.at(content, "*/*", "schema"); ok {
		return schema, true, true
	}
	schema, ok = d.at(content, media, "schema")
	return schema, false, ok
}

func mediaOf(h http.Header, ifAbsent string) (string, error) {
	if h.Get("Content-Type") == "" {
		return ifAbsent, nil
	}
	media, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return media, err
}

func (d *description) checkAnswer(response node, answer *httptest.ResponseRecorder) error {
	headers, _ := d.at(response, "headers")
	for name := range headers.value {
		header, ok := d.at(headers, name)
		if !ok {
			return fmt.Errorf("header %s leads nowhere", name)
		}

		value := answer.Header().Get(name)
		if value == "" && header.value["required"] != true {
			continue
		}

		schema, _ := d.at(header, "schema")
		if err := d.checkSchema(schema, value); err != nil {
			return fmt.Errorf("header %s: %w", name, err)
		}
	}

	content, ok := d.at(response, "content")
	if !ok {
		if answer.Body.Len() > 0 {
			return fmt.Errorf("it has a body")
		}
		return nil
	}

	media, err := mediaOf(answer.Header(), "none")
	if err != nil {
		return err
	}

	schema, anyType, ok := d.schemaOf(content, media)
	if !ok {
		return fmt.Errorf("%s is no content", media)
	}
	if anyType || !strings.HasSuffix(media, "json") {
		return nil
	}

	return d.validateJSON(schema, answer.Body.Bytes())
}

func (d *description) validateJSON(schema node, text []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return d.checkSchema(schema, value)
}
