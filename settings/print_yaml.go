package settings

import (
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"

	"trunkline/internal/setting"
)

// Print writes the settings as YAML, each with a comment that describes it, with secrets
// masked. The output is a valid settings file with the same values, except the secrets.
func (s *Settings) Print(w io.Writer) error {
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	if err := encoder.Encode(newTree(s).yamlNode()); err != nil {
		return fmt.Errorf("writing the settings: %w", err)
	}
	return encoder.Close()
}

func (g *group) yamlNode() *yaml.Node {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, m := range g.members {
		name := &yaml.Node{Kind: yaml.ScalarNode, Value: m.name}
		var value *yaml.Node
		switch {
		case m.group != nil:
			value = m.group.yamlNode()
		case m.list != nil:
			value, name.LineComment = m.list.yamlNode(), m.list.doc
		default:
			value = m.leaf.yamlNode()
			value.LineComment = m.leaf.doc
		}

		node.Content = append(node.Content, name, value)
	}

	return node
}

func (l *list) yamlNode() *yaml.Node {
	node := &yaml.Node{Kind: yaml.SequenceNode}
	for i := range l.items.Len() {
		node.Content = append(node.Content, l.item(i).yamlNode())
	}
	if len(node.Content) == 0 {
		node.Style = yaml.FlowStyle
	}
	return node
}

func (l leaf) yamlNode() *yaml.Node {
	tag := "!!str"
	switch l.Kind() {
	case setting.Bool:
		tag = "!!bool"
	case setting.Int:
		tag = "!!int"
	case setting.Float:
		tag = "" // YAML reads a whole number as an integer
	}

	if !l.IsList() {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: l.Text()}
	}

	node := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, item := range l.Items() {
		node.Content = append(node.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: item})
	}

	return node
}
