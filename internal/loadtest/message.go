package loadtest

import "bytes"

// What is looked for in a message. Both are where our server puts them first:
// the search ends at once.
var (
	idField     = []byte(`"id":"`)
	cursorField = []byte(`{"cursor":"`)
)

// searchWithin bounds the search for the id: a message that has none near its
// beginning is not of our server.
const searchWithin = 256

// idOf returns the id of a message, nil when it has none.
func idOf(message []byte) []byte {
	head := message[:min(len(message), searchWithin)]
	at := bytes.Index(head, idField)
	if at < 0 {
		return nil
	}
	return untilQuote(head[at+len(idField):])
}

// cursorOf returns the cursor that a frame carries instead of an event.
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
