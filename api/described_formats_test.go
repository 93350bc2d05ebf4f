package api

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	yaml "go.yaml.in/yaml/v3"

	"trunkline/format/registry"
)

// TestFormatsAreDescribed holds that openapi.yaml lists the formats that are accepted over HTTP,
// where it describes the path's parameter, and no other.
func TestFormatsAreDescribed(t *testing.T) {
	text, err := descriptions.ReadFile("openapi.yaml")
	must(t, err)
	var doc struct {
		Paths map[string]struct {
			Post struct {
				Parameters []struct{ Name, Description string }
			}
		}
	}
	must(t, yaml.Unmarshal(text, &doc))

	listed := map[string]bool{}
	for path, operations := range doc.Paths {
		for _, p := range operations.Post.Parameters {
			if !strings.HasSuffix(path, "/ingest/{format}") || p.Name != "format" {
				continue
			}
			for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(p.Description, -1) {
				listed[name[1]] = true
			}
		}
	}

	var accepted []string
	for _, f := range registry.Formats() {
		if !f.Internal {
			accepted = append(accepted, f.Name)
		}
	}

	if got := slices.Sorted(maps.Keys(listed)); !slices.Equal(got, accepted) {
		t.Errorf("openapi.yaml lists %v, accepted are %v", got, accepted)
	}
}
