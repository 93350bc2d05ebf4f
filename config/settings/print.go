package settings

import (
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Print writes the settings as YAML, each under its key with what it is,
// secrets masked. A file of them sets the same again, but for the masks.
func (s *Settings) Print(w io.Writer) error {
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	if err := encoder.Encode(tree(s).node()); err != nil {
		return fmt.Errorf("writing the settings: %w", err)
	}
	return encoder.Close()
}

func (g *group) node() *yaml.Node {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, m := range g.members {
		var value *yaml.Node
		if m.group != nil {
			value = m.group.node()
		} else {
			value = m.leaf.node()
			value.LineComment = m.leaf.doc
		}
		node.Content = append(node.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: m.name}, value)
	}
	return node
}

func (l leaf) node() *yaml.Node {
	tag := "!!str"
	switch l.at.(type) {
	case *bool:
		tag = "!!bool"
	case *int:
		tag = "!!int"
	case *float64:
		tag = "" // a whole one is an integer to YAML
	}
	if !l.list() {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: l.text()}
	}
	node := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, item := range l.items() {
		node.Content = append(node.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: item})
	}
	return node
}

// text returns the leaf's value as it may be set again, secrets masked.
func (l leaf) text() string {
	switch at := l.at.(type) {
	case *string:
		return *at
	case *bool:
		return strconv.FormatBool(*at)
	case *int:
		return strconv.Itoa(*at)
	case *float64:
		return strconv.FormatFloat(*at, 'f', -1, 64)
	case *time.Duration:
		return shortDuration(*at)
	case fmt.Stringer: // *Secret, *URL, *Bytes
		return at.String()
	}
	return strings.Join(l.items(), ",")
}

// items returns the values of a list.
func (l leaf) items() (items []string) {
	switch at := l.at.(type) {
	case *[]string:
		return *at
	case *[]netip.Prefix:
		for _, prefix := range *at {
			items = append(items, prefix.String())
		}
	}
	return items
}

// shortDuration is d without the zero units: 1h, not 1h0m0s.
func shortDuration(d time.Duration) string {
	text := d.String()
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		text = short + "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		text = short + "h"
	}
	return text
}
