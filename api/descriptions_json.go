package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"
	yaml "go.yaml.in/yaml/v3"
)

// serveFileAsJSON serves a YAML description converted to JSON, for clients that do not read
// YAML.
func serveFileAsJSON(name string) echo.HandlerFunc {
	convert := sync.OnceValues(func() ([]byte, error) {
		text, err := descriptions.ReadFile(name)
		if err != nil {
			return nil, err
		}
		return yamlToJSON(text)
	})

	return func(c echo.Context) error {
		text, err := convert()
		if err != nil {
			return fmt.Errorf("converting %s to JSON: %w", name, err)
		}
		allowCaching(c)
		return writeBytes(c, http.StatusOK, "application/json", text)
	}
}

// yamlToJSON converts YAML to JSON. It keeps the order of members.
func yamlToJSON(text []byte) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := writeNode(&out, &doc); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func writeNode(out *bytes.Buffer, n *yaml.Node) error {
	switch n.Kind {
	case yaml.DocumentNode:
		return writeNode(out, n.Content[0])
	case yaml.AliasNode:
		return writeNode(out, n.Alias)
	case yaml.MappingNode:
		return writeNodes(out, n.Content, 2, "{,}")
	case yaml.SequenceNode:
		return writeNodes(out, n.Content, 1, "[,]")
	}

	var value any
	if err := n.Decode(&value); err != nil {
		return err
	}

	return writeValue(out, value)
}

// writeNodes writes elements (step 1) or members (step 2). punctuation has the opening
// bracket, the separator and the closing bracket.
func writeNodes(out *bytes.Buffer, nodes []*yaml.Node, step int, punctuation string) error {
	out.WriteByte(punctuation[0])
	for i := 0; i < len(nodes); i += step {
		if i > 0 {
			out.WriteByte(punctuation[1])
		}

		if step == 2 {
			if strings.TrimSpace(nodes[i].Value) == "<<" {
				return fmt.Errorf("line %d: a merge key has no equivalent in JSON", nodes[i].Line)
			}
			if err := writeValue(out, nodes[i].Value); err != nil {
				return err
			}

			out.WriteByte(':')
		}

		if err := writeNode(out, nodes[i+step-1]); err != nil {
			return err
		}
	}

	out.WriteByte(punctuation[2])
	return nil
}

func writeValue(out *bytes.Buffer, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	out.Write(text)
	return nil
}
