package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"trunkline/internal/setting"
)

// readYAML sets the settings in the YAML text of the file name. It walks the nodes instead
// of decoding into a struct, so that one pass finds all unknown keys, repeated keys and
// wrong types, and the same parser reads values as for variables and flags.
func (g *group) readYAML(name string, text []byte) setting.Problems {
	return readDocument(name, text, func(r *fileReader, node *yaml.Node) { r.readGroup(g, node) })
}

// readYAML replaces the list by that in the text, which is YAML or JSON.
func (l *list) readYAML(name string, text []byte) setting.Problems {
	return readDocument(name, text, func(r *fileReader, node *yaml.Node) { r.readList(l, node) })
}

func readDocument(name string, text []byte, read func(*fileReader, *yaml.Node)) setting.Problems {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, more yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF): // an empty file sets nothing
		return nil
	case err != nil:
		return setting.Problems{{Where: name, Text: err.Error()}}
	}

	err := decoder.Decode(&more)
	if !errors.Is(err, io.EOF) {
		return setting.Problems{{Where: name, Text: "want one YAML document, there is another behind it"}}
	}

	reader := fileReader{name: name}
	read(&reader, document.Content[0])
	return reader.problems
}

// fileReader sets settings from YAML nodes and collects the problems.
type fileReader struct {
	name     string // of the file, for problems
	problems setting.Problems
}

func (r *fileReader) addProblem(node *yaml.Node, key, format string, args ...any) {
	r.problems = append(r.problems, setting.Problem{
		Where: fmt.Sprintf("%s:%d", r.name, node.Line), Key: key, Text: fmt.Sprintf(format, args...),
	})
}

func (r *fileReader) readGroup(g *group, node *yaml.Node) {
	if node.Tag == "!!null" { // all keys under it are commented out
		return
	}
	if node.Kind != yaml.MappingNode {
		r.addProblem(node, g.name, "want keys with values under it, got %s", describeNode(node))
		return
	}

	seen := make(map[string]int, len(node.Content)/2)
	for i := 0; i < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		m, known := g.find(key.Value)
		fullKey := key.Value

		if g.name != "" {
			fullKey = g.name + "." + key.Value
		}

		secret := g.fileSecret(key.Value)
		switch line, repeated := seen[key.Value]; {
		case !known && secret != nil:
			r.readSecretFile(secret, value)
		case !known && newNames[fullKey] != "":
			r.addProblem(key, fullKey, "is called %s", newNames[fullKey])
		case !known:
			r.addProblem(key, fullKey, "unknown key")
		case repeated:
			r.addProblem(key, fullKey, "set before, on line %d", line)
		case seen[key.Value+"_file"] != 0 && g.fileSecret(key.Value+"_file") != nil:
			r.addProblem(key, fullKey, "%s_file is set too: unset one", fullKey)
		case m.group != nil:
			r.readGroup(m.group, value)
		case m.list != nil:
			r.readList(m.list, value)
		default:
			r.readLeaf(m.leaf, value)
		}

		seen[key.Value] = key.Line
	}
}

// readList replaces the items of a list of groups by those of the node.
func (r *fileReader) readList(l *list, node *yaml.Node) {
	if node.Tag == "!!null" {
		return
	}
	if node.Kind != yaml.SequenceNode {
		r.addProblem(node, l.key, "want a list of entries with keys, got %s", describeNode(node))
		return
	}

	l.items.SetZero()
	for _, item := range node.Content {
		r.readGroup(l.appendItem(), item)
	}
}

// newNames has the names of settings that were renamed, by their former ones.
var newNames = map[string]string{"fanout.allowed_origins": "allowed_origins"}

// fileSecret returns the secret of an item of a list whose file the key with the suffix
// _file names, nil for other keys. Only secrets in lists have such a key, because they
// have no variable.
func (g *group) fileSecret(key string) *leaf {
	name, ok := strings.CutSuffix(key, "_file")
	m, known := g.find(name)
	if ok && known && strings.HasSuffix(g.name, "]") && m.leaf != nil && m.leaf.IsSecret() {
		return m.leaf
	}
	return nil
}

func (r *fileReader) readSecretFile(l *leaf, node *yaml.Node) {
	if node.Kind != yaml.ScalarNode || node.Tag != "!!str" {
		r.addProblem(node, l.key+"_file", "want the name of a file, got %s", describeNode(node))
		return
	}
	if l.Text() != "" {
		r.addProblem(node, l.key+"_file", "%s is set too: unset one", l.key)
		return
	}
	if err := l.setFromFile(node.Value); err != nil {
		r.addProblem(node, l.key+"_file", "%v", err)
	}
}

func (r *fileReader) readLeaf(l *leaf, node *yaml.Node) {
	nodes := []*yaml.Node{node}
	if l.IsList() {
		if node.Kind != yaml.SequenceNode {
			r.addProblem(node, l.key, "want a list such as [a, b], got %s", describeNode(node))
			return
		}
		nodes = node.Content
	}

	var items []string
	for _, item := range nodes {
		if err := l.checkType(item); err != nil {
			r.addProblem(item, l.key, "%v", err)
			return
		}
		items = append(items, item.Value)
	}

	if err := l.Set(items); err != nil {
		r.addProblem(node, l.key, "%v", err)
	}
}

// checkType returns an error if the node's YAML type does not fit the leaf, or the items of
// the leaf. Set parses the text.
func (l *leaf) checkType(node *yaml.Node) error {
	want, tags := "text", []string{"!!str"}
	switch l.Kind() {
	case setting.Bool:
		want, tags = "true or false", []string{"!!bool"}
	case setting.Int:
		want, tags = "a whole number", []string{"!!int"}
	case setting.Float:
		want, tags = "a number", []string{"!!int", "!!float"}
	case setting.Size:
		want, tags = "a size such as 1048576 or 512MiB", []string{"!!int", "!!str"}
	}

	for _, tag := range tags {
		if node.Kind == yaml.ScalarNode && node.Tag == tag {
			return nil
		}
	}

	err := fmt.Errorf("want %s, got %s", want, describeNode(node))
	if want == "text" && node.Kind == yaml.ScalarNode && node.Tag != "!!null" {
		err = fmt.Errorf("%w: put it in quotes", err)
	}

	return err
}

// describeNode returns the kind of a node for an error text.
func describeNode(node *yaml.Node) string {
	switch node.Kind {
	case yaml.MappingNode:
		return "keys with values"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}

	switch node.Tag {
	case "!!null":
		return "nothing"
	case "!!bool":
		return "true or false"
	case "!!int", "!!float":
		return "a number"
	case "!!timestamp":
		return "a date"
	}

	return "text"
}
