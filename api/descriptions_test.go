package api

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"trunkline/event"
	"trunkline/event/state"
)

var parameter = regexp.MustCompile(`:([a-z_]+)`)

func TestEveryRouteIsDescribedAndNoOther(t *testing.T) {
	e := newEnv(t)
	var routed, described []string
	for _, r := range e.api.echo.Routes() {
		routed = append(routed, r.Method+" "+parameter.ReplaceAllString(r.Path, "{$1}"))
	}

	d := readDescription(t)
	paths, _ := d.at(d.root(), "paths")
	for path := range paths.value {
		item, ok := d.at(paths, path)
		if !ok {
			t.Fatalf("%s leads nowhere", path)
		}

		for method := range item.value {
			if method == "parameters" {
				continue
			}
			described = append(described, strings.ToUpper(method)+" "+path)
		}
	}

	slices.Sort(routed)
	slices.Sort(described)
	if !slices.Equal(routed, described) {
		t.Errorf("routes:\n%s\nopenapi.yaml:\n%s", strings.Join(routed, "\n"), strings.Join(described, "\n"))
	}
}

func TestDescriptionsAreServed(t *testing.T) {
	e := newEnv(t)
	for path, contentType := range map[string]string{
		"/openapi.yaml": "application/yaml", "/asyncapi.yaml": "application/yaml",
		"/schemas/cc_evt.json": "application/schema+json", "/schemas/cdr.json": "application/schema+json",
		"/schemas/cc_state.json": "application/schema+json", "/schemas/cc_stats.json": "application/schema+json",
		"/schemas/cc_queues.json": "application/schema+json", "/schemas/cc_accounts.json": "application/schema+json",
		"/schemas/audit.json": "application/schema+json", "/schemas/generic.json": "application/schema+json",
		"/schemas/call_event.json":        "application/schema+json",
		"/schemas/agent_state_event.json": "application/schema+json", "/schemas/facts.json": "application/schema+json",
	} {
		w := e.ask(200, "GET", path, nil, "", nil)
		want, err := descriptions.ReadFile(strings.TrimPrefix(path, "/"))
		must(t, err)
		if w.Header().Get("Content-Type") != contentType || w.Body.String() != string(want) {
			t.Errorf("%s: %s", path, w.Header().Get("Content-Type"))
		}
	}
}

// walk visits every object of a document.
func walk(v any, path string, visit func(path string, object map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		visit(path, v)
		for _, name := range slices.Sorted(maps.Keys(v)) {
			walk(v[name], path+"/"+name, visit)
		}
	case []any:
		for i, element := range v {
			walk(element, fmt.Sprint(path, "/", i), visit)
		}
	}
}

func TestEveryReferenceLeadsSomewhere(t *testing.T) {
	for _, name := range []string{"openapi.yaml", "asyncapi.yaml"} {
		d := &description{doc: readYAML(t, name)}
		walk(d.doc, "", func(path string, object map[string]any) {
			ref, ok := object["$ref"].(string)
			if !ok {
				return
			}
			if _, ok := d.at(node{value: map[string]any{"here": object}}, "here"); ok {
				return
			}
			if _, err := descriptions.ReadFile(ref); err != nil {
				t.Errorf("%s%s: %s leads nowhere", name, path, ref)
			}
		})
	}
}

func TestOpenAPIExamplesAreWhatTheyShow(t *testing.T) {
	d := readDescription(t)

	examples := 0
	var check func(n node)
	check = func(n node) {
		example, ok := n.value["example"]
		schema, described := d.at(n, "schema")
		if ok && described {
			examples++
			if err := d.checkSchema(schema, example); err != nil {
				t.Errorf("%v: %v", n.path, err)
			}
		}

		for name := range n.value {
			// The target of a $ref is checked at its definition.
			if child, ok := d.at(n, name); ok && slices.Equal(child.path, append(slices.Clip(n.path), name)) {
				check(child)
			}
		}
	}

	check(d.root())
	if examples < 15 {
		t.Errorf("only %d examples were found", examples)
	}
}

// The topics and headers of asyncapi.yaml are the ones the code uses, and its
// examples fit their schemas.
func TestAsyncAPIIsTheWire(t *testing.T) {
	d := &description{doc: readYAML(t, "asyncapi.yaml")}
	channels, _ := d.at(d.root(), "channels")
	var addresses []string

	for name := range channels.value {
		channel, _ := d.at(channels, name)
		addresses = append(addresses, channel.value["address"].(string))
	}

	slices.Sort(addresses)
	want := []string{"{path}", "/media/v1/{provider_id}", channelPrefix + "/ws", channelWSPrefix, event.TopicRaw,
		event.TopicCDRRaw, event.TopicEvents, event.TopicState, event.TopicStats, event.TopicQueues,
		event.TopicAccounts, event.TopicCDR, event.TopicDead, event.TopicAudit}
	slices.Sort(want)

	if !slices.Equal(addresses, want) {
		t.Errorf("addresses %v, want %v", addresses, want)
	}

	for message, want := range map[string][]string{
		"rawEvent": {event.HeaderFormat, event.HeaderSource, event.HeaderIdentity, event.HeaderTimeZone,
			event.HeaderTrace, event.HeaderTraceState},
		"rawRecord": {event.HeaderFormat, event.HeaderSource, event.HeaderIdentity, event.HeaderTimeZone,
			event.HeaderTrace, event.HeaderTraceState},
		"normalizedEvent": {event.HeaderType, event.HeaderAccount, event.HeaderOriginalFormat, event.HeaderName,
			event.HeaderAgent, event.HeaderQueue, event.HeaderCall, event.HeaderIdentity, event.HeaderPosition,
			event.HeaderSourceLog, event.HeaderTrace, event.HeaderTraceState,
			"ce_id", "ce_source", "ce_specversion", "ce_time", "ce_type", event.HeaderContentType},
		"row": {event.HeaderAccount, event.HeaderPosition, event.HeaderSourceLog, event.HeaderOrigination,
			event.HeaderOneOfSeveral},
		"state": {state.HeaderEventID},
		"dead": {event.HeaderErrorKind, event.HeaderError, event.HeaderOrigTopic, event.HeaderOrigPartition,
			event.HeaderOrigOffset},
	} {
		properties, ok := d.at(d.root(), "components", "messages", message, "headers", "properties")
		slices.Sort(want)
		if got := slices.Sorted(maps.Keys(properties.value)); !ok || !slices.Equal(got, want) {
			t.Errorf("%s has the headers %v, want %v", message, got, want)
		}
	}

	messages, _ := d.at(d.root(), "components", "messages")
	examples := 0
	for name := range messages.value {
		message, _ := d.at(messages, name)
		payload, _ := message.value["payload"].(map[string]any)
		ref, _ := payload["$ref"].(string)

		list, _ := message.value["examples"].([]any)
		for _, example := range list {
			if ref == "" {
				continue
			}

			examples++
			if err := schema(t,
				strings.TrimPrefix(ref, "schemas/")).Validate(example.(map[string]any)["payload"]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}

	if examples < 3 {
		t.Errorf("only %d examples were found", examples)
	}
}
