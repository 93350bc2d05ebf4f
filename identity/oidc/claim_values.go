package oidc

import (
	"encoding/json"
	"strings"
)

// claims are the claims of a token, by name.
type claims map[string]json.RawMessage

// find returns the claim with the name, which may have dots, else the member at that
// path of nested objects, such as realm_access.roles.
func (c claims) find(name string) json.RawMessage {
	if value, ok := c[name]; ok {
		return value
	}
	outer, inner, nested := strings.Cut(name, ".")
	var object claims
	if !nested || json.Unmarshal(c[outer], &object) != nil {
		return nil
	}
	return object.find(inner)
}

// text returns a claim that is a string or a number.
func (c claims) text(name string) (text string, ok bool) {
	return scalarText(c.find(name))
}

// list returns the texts of a claim that is an array of texts or a single text.
func (c claims) list(name string) (texts []string) {
	value := c.find(name)
	var items []json.RawMessage
	if json.Unmarshal(value, &items) != nil {
		items = []json.RawMessage{value}
	}

	for _, item := range items {
		if text, ok := scalarText(item); ok && text != "" {
			texts = append(texts, text)
		}
	}

	return texts
}

func scalarText(value json.RawMessage) (text string, ok bool) {
	if json.Unmarshal(value, &text) == nil && string(value) != "null" {
		return text, true
	}
	var number json.Number
	if json.Unmarshal(value, &number) == nil && string(value) != "null" {
		return number.String(), true
	}
	return "", false
}
