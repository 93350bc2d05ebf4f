package load

import "bytes"

// Byte sequences to search for in a message. Our server writes both near the beginning, so the
// searches are short.
var (
	idField     = []byte(`"id":"`)
	cursorField = []byte(`{"cursor":"`)
)

// idSearchBytes bounds the search for the id: messages of our server have it near the beginning.
const idSearchBytes = 256

// idOf returns the id of a message, nil if it has none.
func idOf(message []byte) []byte {
	head := message[:min(len(message), idSearchBytes)]
	start := bytes.Index(head, idField)
	if start < 0 {
		return nil
	}
	return untilQuote(head[start+len(idField):])
}

// cursorOf returns the cursor of a frame that has one in place of an event.
func cursorOf(message []byte) (cursor []byte, ok bool) {
	rest, ok := bytes.CutPrefix(message, cursorField)
	if !ok {
		return nil, false
	}
	cursor = untilQuote(rest)
	return cursor, cursor != nil
}

func untilQuote(b []byte) []byte {
	end := bytes.IndexByte(b, '"')
	if end < 0 {
		return nil
	}
	return b[:end]
}
