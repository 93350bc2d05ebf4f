package dialect

import (
	"bytes"
	"encoding/json"
	"maps"
)

// objectOf decodes a provider's session object, which was validated when it was stored. It is never nil.
func objectOf(session []byte) map[string]any {
	object := make(map[string]any)
	if len(session) > 0 {
		decoder := json.NewDecoder(bytes.NewReader(session))
		decoder.UseNumber()         // numbers go on as they were written
		_ = decoder.Decode(&object) // validated
	}
	return object
}

// merge returns object with the members of over, recursively. Neither is changed.
func merge(object, over map[string]any) map[string]any {
	merged := maps.Clone(object)
	for name, value := range over {
		inner, isObject := value.(map[string]any)
		before, wasObject := merged[name].(map[string]any)
		if isObject && wasObject {
			value = merge(before, inner)
		}
		merged[name] = value
	}

	return merged
}

// sendJSON sends a value that can be encoded, such as what was decoded from JSON.
func sendJSON(send Send, value any) {
	text, err := json.Marshal(value)
	if err == nil {
		send(func(dst []byte) []byte { return append(dst, text...) })
	}
}
